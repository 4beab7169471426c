// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/verdict.h"

namespace rollcall {

const char* CauseName(Cause cause) {
  switch (cause) {
#define NAME(name, text) \
  case Cause::name:      \
    return text;
    ROLLCALL_CAUSES(NAME)
#undef NAME
  }
  return "unknown";
}

const char* CertaintyName(Certainty certainty) {
  switch (certainty) {
    case Certainty::kPossible:
      return "possible";
    case Certainty::kLikely:
      return "likely";
    case Certainty::kCertain:
      return "certain";
  }
  return "possible";
}

}  // namespace rollcall
