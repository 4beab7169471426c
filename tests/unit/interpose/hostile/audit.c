// SPDX-License-Identifier: Apache-2.0
// An auditor (LD_AUDIT) that sees every binding.
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>

unsigned la_version(unsigned version) { return version; }
unsigned la_objopen(struct link_map* map, Lmid_t lmid, uintptr_t* cookie) {
  (void)map, (void)lmid, (void)cookie;
  return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned index, uintptr_t* from, uintptr_t* to,
                       unsigned* flags, const char* name) {
  (void)index, (void)from, (void)to, (void)flags, (void)name;
  return symbol->st_value;
}
