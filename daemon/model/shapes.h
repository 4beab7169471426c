// SPDX-License-Identifier: Apache-2.0
// The shapes of tensors, as texts of which each is kept once: jobs have few, and
// millions of records that speak of them.
#pragma once

#include <string>

namespace rollcall {

// "[1024, 4096]", for as long as the program runs; nullptr for "", for what is too long
// to be a shape, and where too many are known. Any thread.
const std::string* InternShape(const std::string& text);

}  // namespace rollcall
