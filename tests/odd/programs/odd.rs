// SPDX-License-Identifier: Apache-2.0
// A job in Rust: threads call NCCL, and a panic unwinds.
use std::os::raw::{c_int, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u8; 128]);

#[link(name = "nccl")]
extern "C" {
    fn ncclGetUniqueId(id: *mut UniqueId) -> c_int;
    fn ncclCommInitRank(comm: *mut *mut c_void, size: c_int, id: UniqueId, rank: c_int) -> c_int;
    fn ncclAllReduce(
        from: *const c_void, to: *mut c_void, count: usize, kind: c_int, operation: c_int,
        comm: *mut c_void, stream: *mut c_void,
    ) -> c_int;
    fn ncclCommDestroy(comm: *mut c_void) -> c_int;
}

fn work() {
    let mut id = UniqueId([0; 128]);
    let mut comm = std::ptr::null_mut();
    unsafe {
        assert_eq!(ncclGetUniqueId(&mut id), 0);
        assert_eq!(ncclCommInitRank(&mut comm, 2, id, 0), 0);
        for _ in 0..1000 {
            let nothing = std::ptr::null_mut();
            assert_eq!(ncclAllReduce(nothing, nothing, 8, 7, 0, comm, nothing), 0);
        }
        assert_eq!(ncclCommDestroy(comm), 0);
    }
}

fn main() {
    let threads: Vec<_> = (0..16).map(|_| std::thread::spawn(work)).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    std::panic::set_hook(Box::new(|_| {})); // its words have the number of the thread
    let panicked = std::thread::spawn(|| {
        work();
        panic!("on purpose");
    });
    println!("panicked: {}", panicked.join().is_err());
    let child = std::process::Command::new("/bin/echo").arg("a child").output().unwrap();
    print!("{}", String::from_utf8_lossy(&child.stdout));
    std::process::exit(7);
}
