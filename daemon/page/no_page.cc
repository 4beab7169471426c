// SPDX-License-Identifier: Apache-2.0
// Used when the page could not be built.
#include "daemon/page/page_files.h"

namespace rollcall {

const PageFile kPageFiles[] = {{nullptr, nullptr, nullptr, 0}};

}  // namespace rollcall
