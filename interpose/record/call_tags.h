// SPDX-License-Identifier: Apache-2.0
// The tag that a program gives a call of NCCL: a number in the call's configuration, which the
// record shows as "tag 42", where PyTorch's name of the call would be.
//
// For the thread that makes the call, before it. No lock, no allocation. A tag may be a counter,
// and each takes the place of a shape, so the first 64 tags of a process are noted.
#pragma once

namespace rollcall {

// `config`: an ncclCollConfig_t, of any version; may be nullptr. A shape that the program has given
// before the call stays.
void NoteTag(const void* config);

}  // namespace rollcall
