// SPDX-License-Identifier: Apache-2.0
// The shapes of tensors, the groups' names and the operations' own, as PyTorch knows them.
//
// PyTorch's collectives that are called from Python (all of torch.distributed but what DDP's
// reducer and compiled code do in C++) pass through methods of c10d's ProcessGroup. These are
// wrapped, in a process that has imported torch by itself: NCCL's calls that one of them makes on
// its thread then carry the shape of its tensor. What goes wrong there stays there.
//
// StartTensorShapes() is for calls that create communicators, from any thread, with or without
// Python's lock. It must not run Python.
#pragma once

namespace rollcall {

// Has Python's main thread wrap them when it can. Called with each new communicator; does its work
// once, and gives up where torch.distributed is not there.
void StartTensorShapes();

}  // namespace rollcall
