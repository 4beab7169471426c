// SPDX-License-Identifier: Apache-2.0
// How the real library exports a function: ncclX weak, so that others may stand
// in front of it, and pncclX strong at the same address.
#pragma once

#define SIM_EXPORT(name)                                \
  extern "C" {                                          \
  __attribute__((weak)) decltype(name) name;            \
  __attribute__((alias(#name))) decltype(name) p##name; \
  }
