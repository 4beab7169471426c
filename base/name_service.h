// SPDX-License-Identifier: Apache-2.0
// Which of the system's name services a program asks. A static program cannot load the modules that
// nsswitch.conf names: glibc aborts where a module of another glibc is in the way.
#pragma once

#ifdef ROLLCALL_PORTABLE
#include <nss.h>

#include <initializer_list>
#endif

namespace rollcall {

// Call it first in main(). A static program then asks files and DNS, which are part of its own libc
// (since glibc 2.34), and no other service. Does nothing in other programs.
inline void UseBuiltInNameServices() {
#ifdef ROLLCALL_PORTABLE
  __nss_configure_lookup("hosts", "files dns");
  for (const char* database : {"passwd", "group", "services", "protocols", "networks"}) {
    __nss_configure_lookup(database, "files");
  }
#endif
}

}  // namespace rollcall
