// SPDX-License-Identifier: Apache-2.0
// The functions of CPython's stable ABI that the library uses, found at run time if the process has
// Python.
#pragma once

#include <stdint.h>

namespace rollcall::python {

// Opaque.
struct Object;
using Function = Object* (*)(Object*, Object*);

// PyMethodDef
struct MethodDef {
  const char* name;
  Function function;
  int flags;
  const char* doc;
};
inline constexpr int kVarArgs = 1;  // METH_VARARGS

//   FUNCTION(name in CPython, result, arguments)
#define ROLLCALL_PYTHON_FUNCTIONS(FUNCTION)                              \
  FUNCTION(Py_AddPendingCall, int, (int (*)(void*), void*))              \
  FUNCTION(Py_IncRef, void, (Object*))                                   \
  FUNCTION(Py_DecRef, void, (Object*))                                   \
  FUNCTION(Py_BuildValue, Object*, (const char*, ...))                   \
  FUNCTION(PyErr_Clear, void, ())                                        \
  FUNCTION(PyErr_Occurred, Object*, ())                                  \
  FUNCTION(PyImport_ImportModule, Object*, (const char*))                \
  FUNCTION(PySys_GetObject, Object*, (const char*))                      \
  FUNCTION(PySys_SetObject, int, (const char*, Object*))                 \
  FUNCTION(PyCFunction_NewEx, Object*, (MethodDef*, Object*, Object*))   \
  FUNCTION(PyObject_CallObject, Object*, (Object*, Object*))             \
  FUNCTION(PyObject_IsInstance, int, (Object*, Object*))                 \
  FUNCTION(PyObject_GetAttrString, Object*, (Object*, const char*))      \
  FUNCTION(PyObject_SetAttrString, int, (Object*, const char*, Object*)) \
  FUNCTION(PyDict_GetItemString, Object*, (Object*, const char*))        \
  FUNCTION(PyObject_Str, Object*, (Object*))                             \
  FUNCTION(PyTuple_GetItem, Object*, (Object*, intptr_t))                \
  FUNCTION(PyTuple_Size, intptr_t, (Object*))                            \
  FUNCTION(PyLong_AsLong, long, (Object*))                               \
  FUNCTION(PyUnicode_AsUTF8AndSize, const char*, (Object*, intptr_t*))

struct Api {
#define FUNCTION(name, result, arguments) result(*name) arguments;
  ROLLCALL_PYTHON_FUNCTIONS(FUNCTION)
#undef FUNCTION
};
extern Api api;

// The type int.
Object* IntType();

// Fills `api`. False if the process has no Python, or an unsupported one.
bool Find();

// Whether the calling thread holds Python's lock. False where that is not certain.
bool HoldsLock();

// Owns one reference, or none. Clears the error that Python sets when it returns no object.
class Reference {
 public:
  explicit Reference(Object* object) : object_(object) {
    if (object == nullptr) api.PyErr_Clear();
  }
  ~Reference() { Set(nullptr); }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  Object* get() const { return object_; }
  void Set(Object* object) {
    if (object_ != nullptr) api.Py_DecRef(object_);
    object_ = object;
  }

 private:
  Object* object_;
};

// A new reference. nullptr, with no error set: there is no such attribute.
Object* Attribute(Object* object, const char* name);

}  // namespace rollcall::python
