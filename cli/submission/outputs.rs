//! Reads what `--output` says of the kernel's named outputs, and which of them `--feed` names.

use super::compute_files::usage;
use crate::error::CliError;
use std::collections::{BTreeMap, BTreeSet};
use tessera_node::compute as node;
use tessera_protocol::compute::{Element, OutputArray, Reduction};

/// Returns the name of an output, which stands before the first `=` or alone.
pub(crate) fn name(text: &str) -> String {
    text.split_once('=').map_or(text, |(name, _)| name).to_owned()
}

/// Returns the outputs in the order of their names. A type that is left out is the one that the
/// kernel stores, according to its PTX.
pub(super) fn outputs(texts: &[String], ptx: Option<&str>) -> Result<Vec<OutputArray>, CliError> {
    let stored = ptx.map(node::output_elements).unwrap_or_default();
    // Unreadable PTX and unknown names are refused when the kernel is bound.
    let known = ptx.map(|ptx| node::output_names(ptx).unwrap_or_default());
    let mut outputs = Vec::new();
    for text in texts {
        let (said, mut output) = read(text)?;
        let is_unknown = known.as_ref().is_some_and(|known| !known.contains(&output.name));
        output.element = match said {
            Some(element) => element,
            None if is_unknown => Element::F32,
            None => stored_type(&output.name, &stored, ptx.is_some())?,
        };
        outputs.push(output);
    }
    outputs.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(pair) = outputs.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return Err(usage(format!("--output: `{}` is given twice", pair[0].name)));
    }
    Ok(outputs)
}

/// Returns the input that is fed and the output that it becomes: `NAME` or `NAME=OUTPUT`.
pub(super) fn feed(text: Option<&str>) -> (Option<String>, Option<String>) {
    match text.and_then(|text| text.split_once('=')) {
        Some((input, output)) => (Some(input.to_owned()), Some(output.to_owned())),
        None => (text.map(str::to_owned), None),
    }
}

/// The type that a kernel stores into an output.
fn stored_type(
    name: &str,
    stored: &BTreeMap<String, BTreeSet<Element>>,
    is_compiled: bool,
) -> Result<Element, CliError> {
    let elements: Vec<Element> = stored.get(name).into_iter().flatten().copied().collect();
    let problem = match elements.as_slice() {
        [element] => return Ok(*element),
        [] if is_compiled => "the kernel does not show its type".to_owned(),
        [] => "its type is needed, since a node compiles the kernel".to_owned(),
        several => {
            let names = several.iter().map(|element| element.name()).collect::<Vec<_>>();
            format!("the kernel stores {} into it", names.join(" and "))
        }
    };
    let element = elements.first().copied().unwrap_or(Element::F64);
    Err(usage(format!("--output {name}: {problem}"))
        .hint(format!("say it: --output {name}={element}")))
}

/// An output, and its type if that is said. The output's own is then to be set.
fn read(text: &str) -> Result<(Option<Element>, OutputArray), CliError> {
    let (name, rest) = text.split_once('=').unwrap_or((text, ""));
    let wrong = |problem: String| {
        usage(format!("--output {name}: {problem}")).hint(
            "write NAME=TYPE, NAME=TYPExCHANNELS, and to reduce it NAME=TYPE:sum or \
                NAME=TYPE:count:KEYS",
        )
    };
    let mut parts = rest.split(':');
    let (element, channels) = shape(parts.next().unwrap_or_default()).map_err(wrong)?;
    let reduction = parts.next().map(str::parse::<Reduction>).transpose();
    let reduction = reduction.map_err(|error| wrong(error.to_string()))?;
    let keys = parts.next().map_or(Ok(0), |keys| {
        keys.parse().map_err(|_| wrong(format!("`{keys}` is not a number of keys")))
    })?;
    if let Some(more) = parts.next() {
        return Err(wrong(format!("`{more}` is too much")));
    }
    let (name, of) = (name.to_owned(), element.unwrap_or(Element::F32));
    Ok((element, OutputArray { name, channels, element: of, reduction, keys }))
}

/// Reads `TYPE`, `TYPExCHANNELS`, `xCHANNELS` or nothing.
fn shape(text: &str) -> Result<(Option<Element>, u8), String> {
    if text.is_empty() {
        return Ok((None, 1));
    }
    let error = match text.parse::<Element>() {
        Ok(element) => return Ok((Some(element), 1)),
        Err(error) => error,
    };
    let digits = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let Some((name, channels)) = text.rsplit_once('x').filter(|(_, rest)| digits(rest)) else {
        return Err(error);
    };
    let channels =
        channels.parse().map_err(|_| format!("`{channels}` is not a number of channels"))?;
    let element = if name.is_empty() { None } else { Some(name.parse()?) };
    Ok((element, channels))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Option<(Option<Element>, u8, Option<Reduction>, u32)> {
        let (element, output) = read(text).ok()?;
        Some((element, output.channels, output.reduction, output.keys))
    }

    #[test]
    fn an_output_has_a_type_channels_and_a_reduction() {
        use Element::{Complex64, F64, U8, U32};
        assert_eq!(seen("flux=f64"), Some((Some(F64), 1, None, 0)));
        assert_eq!(seen("id=u32x3"), Some((Some(U32), 3, None, 0)));
        assert_eq!(seen("wave=complex64"), Some((Some(Complex64), 1, None, 0)));
        assert_eq!(seen("wave=complex64x2"), Some((Some(Complex64), 2, None, 0)));
        assert_eq!(seen("total=f64:sum"), Some((Some(F64), 1, Some(Reduction::Sum), 0)));
        assert_eq!(seen("bins=u8:count:256"), Some((Some(U8), 1, Some(Reduction::Count), 256)));
        assert_eq!(seen("mean=f64x3:mean:7"), Some((Some(F64), 3, Some(Reduction::Mean), 7)));
        for (text, channels) in [("flux", 1), ("flux=", 1), ("flux=x4", 4)] {
            assert_eq!(seen(text), Some((None, channels, None, 0)), "{text}");
        }
        assert_eq!(seen("flux=:max"), Some((None, 1, Some(Reduction::Max), 0)));
        for bad in [
            "a=f33",
            "a=f64x",
            "a=f64x999",
            "a=f64:",
            "a=f64:add",
            "a=f64:sum:x",
            "a=x",
            "a=f64:sum:1:2",
        ] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains("--output a: ") && error.contains("write NAME=TYPE"), "{error}");
        }
        assert_eq!((name("flux=f64x3"), name("flux")), ("flux".to_owned(), "flux".to_owned()));
    }

    #[test]
    fn types_that_are_left_out_are_those_of_the_stores() {
        let ptx = "\
            .version 7.0\n.target sm_75\n.address_size 64\n\
            .const .align 128 .b8 flux[384];\n.const .align 128 .b8 mixed[384];\n\
            .const .align 128 .b8 still[384];\n\
            .visible .entry compute(.param .align 8 .b8 chunk[56])\n{\n.reg .b64 %rd<3>;\n\
            ld.const.u64 %rd1, [flux];\n// tessera_output f64 %rd1\n\
            ld.const.u64 %rd2, [mixed];\n// tessera_output f64 %rd2\n// tessera_output u8 %rd2\n\
            ret;\n}\n";
        let of = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            let outputs = outputs(&texts, Some(ptx)).map_err(|error| error.to_string())?;
            let seen = outputs.into_iter().map(|output| (output.name, output.element));
            Ok::<_, String>(seen.collect::<Vec<_>>())
        };
        let both = vec![("flux".to_owned(), Element::F64), ("still".to_owned(), Element::I16)];
        assert_eq!(of(&["still=i16", "flux"]), Ok(both));
        assert!(of(&["mixed"]).unwrap_err().contains("stores f64 and u8 into it"));
        assert!(of(&["still"]).unwrap_err().contains("does not show its type"));
        assert!(of(&["flux", "flux=f32"]).unwrap_err().contains("`flux` is given twice"));
        assert_eq!(of(&["flx"]).unwrap().len(), 1, "binding knows what there is");
        assert!(outputs(&["a".to_owned()], None).unwrap_err().to_string().contains("a node"));
    }

    #[test]
    fn a_feed_names_an_input_and_perhaps_an_output() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(feed(None), (None, None));
        assert_eq!(feed(Some("u")), (some("u"), None));
        assert_eq!(feed(Some("u=next")), (some("u"), some("next")));
    }
}
