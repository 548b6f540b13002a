//! Tests of the pool with made-up renderers.

use super::*;
use crate::test_scene;
use std::sync::mpsc;

/// Adds a number to every sum that depends only on its pixel, its channel and each of its samples.
fn add_pattern(params: &UnitParams, film: &mut [i64]) -> u64 {
    let (width, height) = (params.width, params.height);
    for (index, sum) in film.iter_mut().enumerate() {
        let index = index as u32;
        let (x, y) = (params.x as u32 + index % width, params.y as u32 + index / width % height);
        let channel = index / width / height;
        for sample in params.first_sample..params.first_sample + params.sample_count {
            *sum += i64::from(x * 7 + y * 1009 + channel * 31 + sample * 3) - 500;
        }
    }
    u64::from(width * height * params.sample_count)
}

fn pattern_pool(threads: u32) -> Pool {
    Pool::start(threads, Box::new(|_, params, film| Ok(add_pattern(params, film)))).unwrap()
}

struct Pending {
    cancel: CancelToken,
    result: mpsc::Receiver<Result<UnitOutput, DeviceError>>,
}

impl Pending {
    fn wait(self) -> Result<UnitOutput, DeviceError> {
        self.result.recv_timeout(Duration::from_secs(20)).expect("every unit ends")
    }
}

fn submit(pool: &Pool, params: UnitParams) -> Pending {
    let (sender, result) = mpsc::channel();
    let cancel = CancelToken::default();
    let finish: Finish = Box::new(move |result| sender.send(result).unwrap());
    let work = Work::Render { frame: test_scene::frame(), params };
    pool.submit(DeviceUnit { work, cancel: cancel.clone(), finish });
    Pending { cancel, result }
}

#[test]
fn a_unit_is_complete_however_it_is_split() {
    for (threads, params) in [
        (1, test_scene::unit(3, 5, 37, 43, 7..40)),
        (3, test_scene::unit(0, 0, 64, 48, 0..1)),
        (8, test_scene::unit(63, 47, 1, 1, 0..1000)),
    ] {
        let mut whole = TileSums::empty(params.width as u16, params.height as u16, 13);
        let rays = add_pattern(&params, &mut whole.values);
        whole.samples = params.sample_count;
        let output = submit(&pattern_pool(threads), params).wait().unwrap();
        assert_eq!((output.sums, output.rays), (whole, rays));
    }
}

#[test]
fn idle_threads_begin_the_next_unit() {
    // The first unit is one block. It ends only when a block of the second unit has begun.
    let (begun, heard) = mpsc::channel();
    let (begun, heard) = (Mutex::new(begun), Mutex::new(heard));
    let renderer = move |_: &CheckedScene, params: &UnitParams, _: &mut [i64]| {
        if params.seed == 1 {
            let next = heard.lock().unwrap().recv_timeout(Duration::from_secs(20));
            return next
                .map(|()| 1)
                .map_err(|_| DeviceError::Failed("the next unit waited".into()));
        }
        begun.lock().unwrap().send(()).unwrap();
        Ok(1)
    };
    let pool = Pool::start(2, Box::new(renderer)).unwrap();
    let first = submit(&pool, UnitParams { seed: 1, ..test_scene::unit(0, 0, 8, 8, 0..1) });
    let second = submit(&pool, UnitParams { seed: 2, ..test_scene::unit(0, 0, 8, 8, 0..1) });
    first.wait().unwrap();
    second.wait().unwrap();
}

#[test]
fn a_panic_fails_only_its_own_unit() {
    let renderer = |_: &CheckedScene, params: &UnitParams, film: &mut [i64]| {
        assert!(params.seed != 13, "unlucky {}", params.seed);
        Ok(add_pattern(params, film))
    };
    let pool = Pool::start(2, Box::new(renderer)).unwrap();
    let bad = submit(&pool, UnitParams { seed: 13, ..test_scene::unit(0, 0, 64, 48, 0..64) });
    let good = submit(&pool, test_scene::unit(0, 0, 64, 48, 0..2));
    match bad.wait() {
        Err(DeviceError::Failed(reason)) => assert!(reason.contains("unlucky 13"), "{reason}"),
        other => panic!("{other:?}"),
    }
    good.wait().unwrap();
}

// promise: P4
#[test]
fn a_cut_unit_has_equal_samples_in_all_pixels() {
    // A run of 16 samples has twelve blocks. The unit is cut in the middle of its second run, and
    // in the very last block.
    for (stop_at, samples) in [(14, 32), (36, 41)] {
        let ((reached, heard), (go, gone)) = (mpsc::channel(), mpsc::channel());
        let (state, gone) = (Mutex::new((0, reached)), Mutex::new(gone));
        let renderer = move |_: &CheckedScene, params: &UnitParams, film: &mut [i64]| {
            let mut state = state.lock().unwrap();
            state.0 += 1;
            if state.0 == stop_at {
                state.1.send(()).unwrap();
                gone.lock().unwrap().recv_timeout(Duration::from_secs(60)).unwrap();
            }
            Ok(add_pattern(params, film))
        };
        let pool = Pool::start(1, Box::new(renderer)).unwrap();
        let unit = submit(&pool, test_scene::unit(0, 0, 64, 48, 7..48));
        let behind = submit(&pool, test_scene::unit(0, 0, 8, 8, 0..1));
        heard.recv_timeout(Duration::from_secs(60)).unwrap();
        unit.cancel.cut();
        behind.cancel.cut();
        go.send(()).unwrap();
        let mut part = TileSums::empty(64, 48, 13);
        let rays = add_pattern(&test_scene::unit(0, 0, 64, 48, 7..7 + samples), &mut part.values);
        part.samples = samples;
        let output = unit.wait().unwrap();
        assert_eq!((output.sums, output.rays), (part, rays));
        assert_eq!(behind.wait(), Err(DeviceError::Cancelled), "it had not begun");
    }
}

#[test]
fn a_pool_closed_during_a_unit_returns_no_film() {
    let (reached, heard) = mpsc::channel();
    let reached = Mutex::new(reached);
    let renderer = move |_: &CheckedScene, params: &UnitParams, film: &mut [i64]| {
        // The receiver is gone after the first message.
        let _ = reached.lock().unwrap().send(());
        std::thread::sleep(Duration::from_millis(2));
        Ok(add_pattern(params, film))
    };
    let pool = Pool::start(1, Box::new(renderer)).unwrap();
    let unit = submit(&pool, test_scene::unit(0, 0, 512, 512, 0..40_000));
    heard.recv_timeout(Duration::from_secs(60)).unwrap();
    unit.cancel.cut();
    drop(pool);
    assert_eq!(unit.wait(), Err(DeviceError::Cancelled));
}

#[test]
fn cancelled_and_withdrawn_units_end_early() {
    let renderer = |_: &CheckedScene, _: &UnitParams, _: &mut [i64]| {
        std::thread::sleep(Duration::from_millis(2));
        Ok(0)
    };
    let pool = Pool::start(1, Box::new(renderer)).unwrap();
    // The unit would sleep for a minute if it were not cancelled.
    let long = submit(&pool, test_scene::unit(0, 0, 64, 48, 0..40_000));
    let behind = submit(&pool, test_scene::unit(0, 0, 8, 8, 0..1));
    assert!(behind.cancel.withdraw());
    let last = submit(&pool, test_scene::unit(0, 0, 8, 8, 0..1));
    while pool.busy().is_zero() {
        std::thread::yield_now();
    }
    assert!(!long.cancel.withdraw());
    long.cancel.cancel();
    assert_eq!(long.wait(), Err(DeviceError::Cancelled));
    assert_eq!(behind.wait(), Err(DeviceError::Cancelled));
    last.wait().unwrap();
}

#[test]
fn units_left_in_a_closed_pool_are_cancelled() {
    let renderer = |_: &CheckedScene, _: &UnitParams, _: &mut [i64]| {
        std::thread::sleep(Duration::from_millis(2));
        Ok(0)
    };
    let pool = Pool::start(1, Box::new(renderer)).unwrap();
    let units: Vec<_> =
        (0..3).map(|_| submit(&pool, test_scene::unit(0, 0, 64, 48, 0..40_000))).collect();
    drop(pool);
    for unit in units {
        assert_eq!(unit.wait(), Err(DeviceError::Cancelled));
    }
}
