// SPDX-License-Identifier: Apache-2.0
// Finds the word that a person probably meant. Pure.
#pragma once

#include <string>
#include <vector>

namespace rollcall {

// The candidate that is nearest to `word`, counted in letters that are wrong, missing, added or
// swapped with their neighbour; of equal ones the first. Empty if no word is near: more than a
// third of the letters differ.
std::string Nearest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace rollcall
