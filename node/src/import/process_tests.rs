//! A process that says it is an importer, and lies about its frames.

use super::arrays::{FrameHead, Layout, hand_over};
use super::memory_file::{self, MemoryFile};
use super::message::{Answer, Order};
use super::process::Process;
use super::{ImportError, ImportLimits};
use crate::device::worker::frame::{receive, send};
use crate::test_scene;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tessera_layout::{Array, FlatScene};
use tessera_scenes::{FlattenOptions, SharedArrays};

/// A liar: its end of the socket, and its files for the frame that it has promised.
type Lie = fn(&UnixStream, &[MemoryFile]);

/// Asks a process for a frame, which promises one, takes its files and then does this.
fn frame_of(lie: Lie) -> Result<FlatScene, ImportError> {
    frame_with(FrameHead::of(&test_scene::frame().scene, None), lie)
}

fn frame_with(head: FrameHead, lie: Lie) -> Result<FlatScene, ImportError> {
    let (socket, mut theirs) = UnixStream::pair().unwrap();
    let liar = std::thread::spawn(move || {
        let order: Option<(Order, Vec<u8>)> = receive(&mut theirs).unwrap();
        assert!(matches!(order, Some((Order::Flatten { .. }, _))));
        send(&mut theirs, &Answer::Frame(Box::new(head.clone())), &[]).unwrap();
        // What is too long gets no files.
        let Ok(layout) = Layout::of(&head, false, 1 << 20) else { return };
        let files = memory_file::take(&theirs, layout.lengths()).unwrap();
        lie(&theirs, &files);
    });
    let child = Command::new("sleep").arg("60").spawn().unwrap();
    let limits = ImportLimits { memory_bytes: 1 << 20, time: Duration::from_secs(30) };
    let mut process = Process::loaded(child, socket, limits);
    let answered = process.ask(&Order::Flatten { options: FlattenOptions::still(64, 48) });
    drop(process);
    liar.join().unwrap();
    answered.map(|answered| answered.scene.unwrap())
}

fn fill(files: &[MemoryFile]) {
    let frame = test_scene::frame();
    let mut scene: FlatScene = FlatScene::clone(&frame.scene);
    let layout = Layout::of(&FrameHead::of(&scene, None), false, 1 << 20).unwrap();
    let shared = SharedArrays {
        triangles: None,
        triangle_vertices: None,
        vertices: None,
        texels: &mut Array::default(),
        environment_texels: &mut Array::default(),
        environment_cells: &mut Array::default(),
        bvh: None,
        meshes: &mut Arc::default(),
    };
    hand_over(&layout, &mut scene, shared, files).unwrap();
}

fn filled(mut socket: &UnixStream) {
    send(&mut socket, &Answer::Filled, &[]).unwrap();
}

fn nonsense(answered: Result<FlatScene, ImportError>) -> String {
    match answered {
        Err(ImportError::Nonsense(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_frame_has_the_bytes_that_were_filled_in() {
    let scene = frame_of(|socket, files| {
        fill(files);
        filled(socket);
    });
    let (scene, frame) = (scene.unwrap(), test_scene::frame());
    assert_eq!((&scene.triangles, &scene.lights), (&frame.scene.triangles, &frame.scene.lights));
    // Who fills nothing in gives zeros, and no memory of anybody.
    let scene = frame_of(|socket, _| filled(socket)).unwrap();
    assert!(bytemuck::must_cast_slice::<_, u8>(&scene.triangles).iter().all(|byte| *byte == 0));
}

#[test]
fn a_frame_that_can_still_be_changed_is_refused() {
    let text = nonsense(frame_of(|socket, files| {
        fill(files);
        let (flags, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses addresses that nobody has.
        let mapped = unsafe {
            mmap(std::ptr::null_mut(), 64, flags, shared, files[0].descriptor(), 0).unwrap()
        };
        filled(socket);
        // It stays until the node has looked. The socket then ends.
        let _ = receive::<Order>(&mut &*socket);
        assert!(!mapped.is_null());
    }));
    assert!(text.contains("can still be changed"), "{text}");
}

#[test]
fn what_is_checked_cannot_be_changed_afterwards() {
    let scene = frame_of(|socket, files| {
        fill(files);
        filled(socket);
        // Until the file is sealed, the node has looked at nothing.
        while files[0].write(0, &[7]).is_ok() {}
        // It was mapped for reading alone, which nobody can change.
        let flags = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses addresses that nobody has.
        let mapped =
            unsafe { mmap(std::ptr::null_mut(), 64, flags.0, flags.1, files[0].descriptor(), 0) };
        assert!(mapped.is_err());
    });
    scene.unwrap();
}

#[test]
fn messages_that_do_not_belong_to_a_frame_are_refused() {
    let again = nonsense(frame_of(|mut socket, _| {
        let head = FrameHead::of(&test_scene::frame().scene, None);
        send(&mut socket, &Answer::Frame(Box::new(head)), &[]).unwrap();
    }));
    assert!(again.contains("another request"), "{again}");
    let bytes = nonsense(frame_of(|mut socket, _| socket.write_all(&[0xff; 64]).unwrap()));
    assert!(bytes.contains("beyond the bounds"), "{bytes}");
    let refused = frame_of(|mut socket, _| {
        let problem = "no room".into();
        let refused = Answer::Refused { problem, absent: false, memory: true };
        send(&mut socket, &refused, &[]).unwrap();
    });
    assert!(matches!(refused, Err(ImportError::MemoryAt { .. })), "{refused:?}");
}

#[test]
fn a_frame_beyond_the_limit_gets_no_file() {
    let mut scene = FlatScene::clone(&test_scene::frame().scene);
    scene.texels = vec![0; 1 << 20].into();
    let text = nonsense(frame_with(FrameHead::of(&scene, None), |_, _| panic!("it has files")));
    assert!(text.contains("more than 1048576 bytes"), "{text}");
}

#[test]
fn files_of_the_importers_own_are_not_taken() {
    // They would come beside bytes of the socket. The node reads bytes alone, so that the system
    // closes what comes beside them.
    let scene = frame_of(|socket, files| {
        fill(files);
        let (own, other) = UnixStream::pair().unwrap();
        memory_file::give(socket, &[MemoryFile::of(other.into())]).unwrap();
        own.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        filled(socket);
        let ended = std::io::Read::read(&mut &own, &mut [0]).unwrap();
        assert_eq!(ended, 0, "nobody has the other end");
    });
    assert!(scene.is_err(), "the byte is no message");
}
