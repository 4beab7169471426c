#include "agent/boot_id.h"

#include <fstream>

namespace rollcall {

const std::string& OwnBootId() {
  static const std::string own = [] {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    std::getline(file, id);
    return id;
  }();
  return own;
}

}  // namespace rollcall
