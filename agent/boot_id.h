// Which start of which kernel this is. All containers of a host share it, no two hosts do.
#pragma once

#include <string>

namespace rollcall {

const std::string& OwnBootId();  // "": the kernel does not say

}  // namespace rollcall
