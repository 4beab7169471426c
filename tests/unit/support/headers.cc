// SPDX-License-Identifier: Apache-2.0
// CMake precompiles headers only for a target with a source, and code for programs differs from
// that for libraries.
int main() {}
