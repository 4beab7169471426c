// SPDX-License-Identifier: Apache-2.0
use std::io::Read;
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex};
use std::{net::TcpListener, thread, time::Duration};

#[inline(never)]
fn recurse(depth: u32) -> u32 {
    if depth == 0 {
        thread::sleep(Duration::from_secs(86400));
        return 0;
    }
    recurse(depth - 1) + 1
}

fn main() {
    let lock = Arc::new((Mutex::new(false), Condvar::new()));
    let (sender, receiver) = mpsc::channel::<u32>();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let barrier = Arc::new(Barrier::new(2));
    thread::spawn(move || {
        let guard = lock.0.lock().unwrap();
        drop(lock.1.wait(guard));
    });
    thread::spawn(move || receiver.recv());
    thread::spawn(move || listener.accept());
    thread::spawn(move || barrier.wait().is_leader());
    thread::spawn(|| std::hint::black_box(recurse(30)));
    thread::sleep(Duration::from_millis(200));
    println!("ready");
    let mut byte = [0];
    std::io::stdin().read(&mut byte).unwrap();
    drop(sender);
}
