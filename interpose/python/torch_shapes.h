// SPDX-License-Identifier: Apache-2.0
// Takes from PyTorch the shapes of tensors, and the names of groups and operations.
//
// PyTorch's collectives that Python calls (all of torch.distributed, except what DDP's reducer and
// compiled code do in C++) pass through methods of c10d's ProcessGroup. The library wraps these
// methods in a process that has imported torch. NCCL calls that a method makes on its thread then
// carry the shape of its tensor. An error in the wrapping never reaches the program.
//
// StartTensorShapes() is for calls that create communicators, from any thread, with or without
// Python's lock. It must not run Python.
#pragma once

namespace rollcall {

// Asks the interpreter to wrap the methods in its main thread. Each new communicator calls it; the
// first call does the work, and gives up if the process has no torch.distributed.
void StartTensorShapes();

}  // namespace rollcall
