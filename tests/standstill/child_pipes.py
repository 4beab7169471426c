# SPDX-License-Identifier: Apache-2.0
"""Hangs between a rank and a child process, in the pipes between them. The others wait for that rank."""

import os
import subprocess
import sys

from common import Hub, main, program, rounds

PACKER = """
import sys, time
sys.stdin.buffer.read()
end = time.monotonic() + float(sys.argv[1])
with open("packed", "wb", buffering=0) as packed:
    while time.monotonic() < end:
        packed.write(bytes(1 << 16))
        time.sleep(0.5)
"""
CHECKER = """
import sys, time
for number in range(int(sys.argv[1])):
    print("sample", number, "has no label and is left out of the evaluation", file=sys.stderr)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    sum(range(20000))
    time.sleep(0.01)
"""
TOKENIZER = """
import sys, time
lines = []
for line in sys.stdin:
    if line.strip():
        lines.append(line)
    else:
        time.sleep(float(sys.argv[1]))
        print(sum(map(len, lines)), flush=True)
        lines.clear()
"""


def pack(closes, seconds):
    reading, writing = os.pipe()
    with subprocess.Popen([sys.executable, "-c", PACKER, str(seconds)], stdin=reading) as packer:
        os.close(reading)
        os.write(writing, bytes(1000))
        if closes:
            os.close(writing)
        packer.wait()  # hangs: keeps_the_write_end


@program
def keeps_the_write_end(args):
    """Rank 1 does not close the pipe that its packer reads to the end, and waits for the packer."""
    hub = Hub(args)
    hub.meet()
    if args.rank == 1:
        pack(closes=args.fixed, seconds=args.seconds)
    hub.meet()


def check(warnings, seconds):
    command = [sys.executable, "-c", CHECKER, str(warnings), str(seconds)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as checker:
        checker.wait()  # hangs: nobody_reads_the_warnings


@program
def nobody_reads_the_warnings(args):
    """Rank 2 waits for a child that has filled the pipe of its warnings, which rank 2 does not read."""
    hub = Hub(args)
    hub.meet()
    if args.rank == 2:
        check(warnings=10 if args.fixed else 5000, seconds=args.seconds if args.fixed else 0)
    hub.meet()


def count_tokens(tokenizer, text):
    tokenizer.stdin.write(text)
    tokenizer.stdin.flush()
    return int(tokenizer.stdout.readline())  # hangs: question_has_no_end


@program
def question_has_no_end(args):
    """Rank 1 leaves out the empty line that ends a question; it and its tokenizer both read."""
    hub = Hub(args)
    number, pause = rounds(args, 3)
    command = [sys.executable, "-c", TOKENIZER, str(pause)]
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tokenizer:
        for step in range(number):
            forgets = step == 4 and args.rank == 1 and not args.fixed
            count_tokens(tokenizer, "a few words\n" if forgets else "a few words\n\n")
            hub.meet()
        tokenizer.stdin.close()


if __name__ == "__main__":
    main()
