# SPDX-License-Identifier: Apache-2.0
"""A broadcast queue in shared memory, as serving engines build it: one writer, a flag of each reader in each slot.

Both ends poll. A slot is free once every reader has set its flag; a slot has a message once the writer has cleared
all of them.
"""

import json
import mmap
import os
import time

SLOTS, SLOT_BYTES = 4, 4096


class BroadcastQueue:
    def __init__(self, name, readers):
        """Every process opens the same file of /dev/shm or of the work folder. New slots are free."""
        self.readers = readers
        self.size = 1 + readers + SLOT_BYTES
        file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(file, SLOTS * self.size)
        self.memory = mmap.mmap(file, SLOTS * self.size)
        os.close(file)
        self.position = 0

    def _next_slot(self):
        start = self.position % SLOTS * self.size
        self.position += 1
        return start

    def acquire_write(self, start):
        """Until the slot was never written, or all have read it."""
        while self.memory[start] and not all(self.memory[start + 1:start + 1 + self.readers]):
            time.sleep(0.002)

    def acquire_read(self, start, reader):
        """Until the slot has a message that this reader has not seen."""
        while not self.memory[start] or self.memory[start + 1 + reader]:
            time.sleep(0.002)  # hangs: reader_is_a_message_ahead

    def enqueue(self, message):
        start = self._next_slot()
        self.acquire_write(start)
        text = json.dumps(message).encode().ljust(SLOT_BYTES)
        self.memory[start] = 0
        self.memory[start + 1:start + 1 + self.readers] = bytes(self.readers)
        self.memory[start + 1 + self.readers:start + self.size] = text
        self.memory[start] = 1

    def dequeue(self, reader):
        start = self._next_slot()
        self.acquire_read(start, reader)
        message = json.loads(self.memory[start + 1 + self.readers:start + self.size])
        self.memory[start + 1 + reader] = 1
        return message
