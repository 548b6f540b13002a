//! The rack as CUDA and NVML number it: devices, MIG slices, identities, `CUDA_VISIBLE_DEVICES`.
//! Holds no state.

use crate::config::{Config, Device, Slice};
use crate::shared::TARGETS_MAX;

/// A device, or a slice of one, that kernels run on.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Index of the device in the rack.
    pub(crate) device: usize,
    /// Index of the slice on the device; `None` for the whole device.
    pub(crate) slice: Option<usize>,
    /// The identity's bytes.
    pub(crate) uuid: [u8; 16],
    pub(crate) name: String,
    pub(crate) memory: u64,
    pub(crate) multiprocessors: i32,
}

/// All targets: the devices by index, then the slices. Their places number the shared state.
pub(crate) fn targets(config: &Config) -> Vec<Target> {
    let whole = config.devices.iter().enumerate().map(|(index, device)| Target {
        device: index,
        slice: None,
        uuid: uuid_of(device, index),
        name: device.name.clone(),
        memory: device.memory,
        multiprocessors: device.multiprocessors,
    });
    let slices = config.devices.iter().enumerate().flat_map(|(index, device)| {
        let slices = device.slices.iter().enumerate();
        slices.map(move |(number, slice)| sliced(device, index, slice, number))
    });
    whole.chain(slices).take(TARGETS_MAX).collect()
}

fn sliced(device: &Device, index: usize, slice: &Slice, number: usize) -> Target {
    let mut uuid = uuid_of(device, index);
    uuid[15] = uuid[15].wrapping_add(0x80 | number as u8);
    Target {
        device: index,
        slice: Some(number),
        uuid,
        name: format!("{} MIG {}", device.name, slice.profile),
        memory: slice.memory,
        multiprocessors: slice.multiprocessors,
    }
}

fn uuid_of(device: &Device, index: usize) -> [u8; 16] {
    let digits: String = device.uuid.chars().filter(char::is_ascii_hexdigit).collect();
    let given = device.uuid.strip_prefix("GPU-").and(digits.get(..32));
    match given.and_then(|digits| u128::from_str_radix(digits, 16).ok()) {
        Some(number) => number.to_be_bytes(),
        // Distinct in every group, so that a mixed-up byte order shows.
        None => (0x7e55_e7a0_0000_4000_8000_0000_0000_0000_u128 + index as u128 + 1).to_be_bytes(),
    }
}

impl Target {
    /// As NVML and `nvidia-smi -L` write it.
    pub(crate) fn identity(&self) -> String {
        let hex: String = self.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        let kind = if self.slice.is_some() { "MIG" } else { "GPU" };
        format!(
            "{kind}-{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }
}

/// The targets that this process's CUDA enumerates, in the order of its ordinals. `visible` is
/// `CUDA_VISIBLE_DEVICES`.
///
/// A name that fits nothing ends the list, and a process sees at most one slice (CUDA C++
/// programming guide, "CUDA environment variables"; MIG user guide, "device enumeration").
pub(crate) fn visible(targets: &[Target], visible: Option<&str>) -> Vec<usize> {
    let offered: Vec<usize> =
        (0..targets.len()).filter(|index| is_offered(targets, *index)).collect();
    let mut chosen: Vec<usize> = match visible {
        None => offered,
        Some(list) => {
            list.split(',').map_while(|name| by_name(targets, &offered, name.trim())).collect()
        }
    };
    let whole: Vec<usize> =
        chosen.iter().copied().filter(|index| targets[*index].slice.is_none()).collect();
    match chosen.first() {
        Some(first) if targets[*first].slice.is_some() && whole.is_empty() => chosen.truncate(1),
        _ => chosen = whole,
    }
    chosen
}

fn is_offered(targets: &[Target], index: usize) -> bool {
    let target = &targets[index];
    let is_cut = targets.iter().any(|other| other.device == target.device && other.slice.is_some());
    target.slice.is_some() || !is_cut
}

fn by_name(targets: &[Target], offered: &[usize], name: &str) -> Option<usize> {
    if let Ok(number) = name.parse::<usize>() {
        return offered.get(number).copied();
    }
    let is_long_enough = name.len() > "GPU-".len();
    offered
        .iter()
        .copied()
        .find(|index| is_long_enough && targets[*index].identity().starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rack() -> Vec<Target> {
        let mut config = Config::of(3, Device::default());
        let slice = Slice { profile: "1g.5gb".to_owned(), memory: 1 << 20, multiprocessors: 1 };
        config.devices[1].slices = vec![slice.clone(), slice];
        targets(&config)
    }

    #[test]
    fn identities_differ_and_are_written_as_nvml_writes_them() {
        let names: Vec<String> = rack().iter().map(Target::identity).collect();
        assert_eq!(names[0], "GPU-7e55e7a0-0000-4000-8000-000000000001");
        let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), 5);
        assert!(names[3].starts_with("MIG-"));
    }

    #[test]
    fn cuda_sees_only_the_visible_devices() {
        let rack = rack();
        let slice = rack[4].identity();
        let seen = |list: &str| visible(&rack, Some(list));
        assert_eq!(visible(&rack, None), [0, 2]);
        assert_eq!(seen("1,0"), [2, 0]);
        assert_eq!(seen(""), [] as [usize; 0]);
        assert_eq!(seen("0,9,1"), [0]);
        assert_eq!(seen(&rack[2].identity()), [2]);
        assert_eq!(seen(&slice), [4]);
        assert_eq!(seen(&format!("{},{slice}", rack[3].identity())), [3]);
    }
}
