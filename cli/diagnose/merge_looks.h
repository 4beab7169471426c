// SPDX-License-Identifier: Apache-2.0
// Joins two looks at one host, some seconds apart, to one. Pure.
//
// More hosts than are looked at at a time are never seen at one moment. So each of them is looked
// at shortly, and when all have been, shortly again: what stood at both looks has stood all the
// time between, on all hosts together.
#pragma once

#include "rollcall/v1/look.pb.h"

namespace rollcall {

// `second` is the newer one, and shows which processes live. Its processes have the samples of
// both.
v1::HostLook MergeLooks(const v1::HostLook& first, v1::HostLook second);

}  // namespace rollcall
