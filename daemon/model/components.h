// SPDX-License-Identifier: Apache-2.0
// The strongly connected components of a graph of waits: who waits for each other. Pure.
#pragma once

#include <cstddef>
#include <vector>

namespace rollcall {

// `edges`: of each node, those that it waits for. A component comes after those that it waits for,
// and its nodes ascend.
std::vector<std::vector<size_t>> FindComponents(
    const std::vector<const std::vector<size_t>*>& edges);

}  // namespace rollcall
