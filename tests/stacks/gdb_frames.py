# SPDX-License-Identifier: Apache-2.0
"""Runs inside gdb: prints the physical frames of all threads as stack_frames does."""
import gdb

gdb.execute("set pagination off")
gdb.execute("set backtrace past-main on")
gdb.execute("set backtrace past-entry on")
gdb.execute("set backtrace limit 4000")
for thread in gdb.selected_inferior().threads():
    thread.switch()
    print(f"thread {thread.ptid[1]} {thread.name}")
    try:
        frame = gdb.newest_frame()
        while frame is not None:
            if frame.type() != gdb.INLINE_FRAME:
                print(f"{frame.pc():#x} {frame.name() or ''}")
            frame = frame.older()
    except gdb.error as error:
        print(f"note {error}")
