// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/python/python_api.h"

#include <dlfcn.h>

#include "interpose/keep_loaded.h"
#include "interpose/real.h"

namespace rollcall::python {

Api api;

namespace {
Object* int_type = nullptr;
}

Object* IntType() { return int_type; }

bool Find() {
  const DlsymFn find = RealDlsym();
  if (find == nullptr) return false;
  int_type = static_cast<Object*>(find(RTLD_DEFAULT, "PyLong_Type"));
  // The same object defines all other functions: the program, or libpython.
  bool all = int_type != nullptr && KeepLoaded(int_type);
#define FUNCTION(name, result, arguments)                                      \
  api.name = reinterpret_cast<result(*) arguments>(find(RTLD_DEFAULT, #name)); \
  all = all && api.name != nullptr;
  ROLLCALL_PYTHON_FUNCTIONS(FUNCTION)
#undef FUNCTION
  dlerror();  // hide our failed look-ups from the program
  return all;
}

// Of a thread that Python has not made, or in a second interpreter, the two differ.
bool HoldsLock() {
  const auto find = [](const char* name) {
    void* found = RealDlsym()(RTLD_DEFAULT, name);
    if (found == nullptr) dlerror();
    return reinterpret_cast<void* (*)()>(found);
  };
  auto* const of_this_thread = find("PyGILState_GetThisThreadState");
  auto* const of_lock = find("_PyThreadState_UncheckedGet");
  if (of_this_thread == nullptr || of_lock == nullptr) return false;
  void* const state = of_this_thread();
  return state != nullptr && state == of_lock();
}

Object* Attribute(Object* object, const char* name) {
  Object* found = object == nullptr ? nullptr : api.PyObject_GetAttrString(object, name);
  if (found == nullptr) api.PyErr_Clear();
  return found;
}

}  // namespace rollcall::python
