# SPDX-License-Identifier: Apache-2.0
"""One rank of a DDP job that hangs in backward() because the other rank never enters."""
import os
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def stand_in_leaf(model, data):
    model(data).sum().backward()
    torch.cuda.synchronize() if torch.cuda.is_available() else None


dist.init_process_group("nccl_cpu")
model = DistributedDataParallel(torch.nn.Linear(64, 64))
data = torch.ones(8, 64)
if dist.get_rank() == 0:
    stand_in_leaf(model, data)
    threading.Timer(8, lambda: print(f"ready {os.getpid()}", flush=True)).start()
    stand_in_leaf(model, data)
else:
    model(data).sum().backward()
    time.sleep(100000)
