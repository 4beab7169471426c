#include "interpose/python_errors.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "interpose/keep_errno.h"
#include "interpose/python_files.h"
#include "interpose/real.h"
#include "interpose/writer.h"

namespace rollcall {
namespace {

// Of CPython's stable ABI; the objects are opaque here.
struct Object;
using Function = Object* (*)(Object*, Object*);

// PyMethodDef
struct MethodDef {
  const char* name;
  Function function;
  int flags;
  const char* doc;
};
constexpr int kVarArgs = 1;  // METH_VARARGS

//   FUNCTION(name in CPython, result, arguments)
#define ROLLCALL_PYTHON_FUNCTIONS(FUNCTION)                            \
  FUNCTION(Py_AddPendingCall, int, (int (*)(void*), void*))            \
  FUNCTION(Py_IncRef, void, (Object*))                                 \
  FUNCTION(Py_DecRef, void, (Object*))                                 \
  FUNCTION(PyErr_Clear, void, ())                                      \
  FUNCTION(PySys_GetObject, Object*, (const char*))                    \
  FUNCTION(PySys_SetObject, int, (const char*, Object*))               \
  FUNCTION(PyCFunction_NewEx, Object*, (MethodDef*, Object*, Object*)) \
  FUNCTION(PyObject_CallObject, Object*, (Object*, Object*))           \
  FUNCTION(PyObject_GetAttrString, Object*, (Object*, const char*))    \
  FUNCTION(PyObject_Str, Object*, (Object*))                           \
  FUNCTION(PyTuple_GetItem, Object*, (Object*, intptr_t))              \
  FUNCTION(PyLong_AsLong, long, (Object*))                             \
  FUNCTION(PyUnicode_AsUTF8AndSize, const char*, (Object*, intptr_t*))

struct Python {
#define FUNCTION(name, result, arguments) result(*name) arguments;
  ROLLCALL_PYTHON_FUNCTIONS(FUNCTION)
#undef FUNCTION
};
Python python;

bool FindPython() {
  const DlsymFn find = RealDlsym();
  if (find == nullptr) return false;
  bool all = true;
#define FUNCTION(name, result, arguments)                                         \
  python.name = reinterpret_cast<result(*) arguments>(find(RTLD_DEFAULT, #name)); \
  all = all && python.name != nullptr;
  ROLLCALL_PYTHON_FUNCTIONS(FUNCTION)
#undef FUNCTION
  return all;
}

// An own reference, or nothing; never leaves an error of Python's behind.
class Reference {
 public:
  explicit Reference(Object* object) : object_(object) {
    if (object == nullptr) python.PyErr_Clear();
  }
  ~Reference() { Set(nullptr); }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  Object* get() const { return object_; }
  void Set(Object* object) {
    if (object_ != nullptr) python.Py_DecRef(object_);
    object_ = object;
  }

 private:
  Object* object_;
};

Object* Attribute(Object* object, const char* name) {
  Object* found = object == nullptr ? nullptr : python.PyObject_GetAttrString(object, name);
  if (found == nullptr) python.PyErr_Clear();
  return found;
}

// Up to the end of its first line; what does not fit is left out.
void CopyFirstLine(Object* text, char* out, size_t size) {
  out[0] = '\0';
  intptr_t length = 0;
  const char* bytes = text == nullptr ? nullptr : python.PyUnicode_AsUTF8AndSize(text, &length);
  if (bytes == nullptr) {
    python.PyErr_Clear();
    return;
  }
  size_t i = 0;
  for (; i + 1 < size && static_cast<intptr_t>(i) < length && bytes[i] != '\n'; ++i) {
    out[i] = bytes[i];
  }
  out[i] = '\0';
}

void CopyAttribute(Object* object, const char* name, char* out, size_t size) {
  const Reference value(Attribute(object, name));
  CopyFirstLine(value.get(), out, size);
}

// As a traceback names it: "ValueError", "torch.OutOfMemoryError".
void NameOfType(Object* type, char* out, size_t size) {
  char module[128], name[128];
  CopyAttribute(type, "__module__", module, sizeof(module));
  CopyAttribute(type, "__qualname__", name, sizeof(name));
  const bool plain =
      module[0] == '\0' || strcmp(module, "builtins") == 0 || strcmp(module, "__main__") == 0;
  snprintf(out, size, "%s%s%s", plain ? "" : module, plain ? "" : ".", name);
}

// "train.py:57": the innermost line of the program, not of a library.
void PlaceOf(Object* traceback, char* out, size_t size) {
  constexpr int kMostFrames = 10000;
  out[0] = '\0';
  Reference at(traceback);
  if (traceback != nullptr) python.Py_IncRef(traceback);
  for (int i = 0; i < kMostFrames && at.get() != nullptr; ++i) {
    char file[512];
    const Reference frame(Attribute(at.get(), "tb_frame"));
    const Reference code(Attribute(frame.get(), "f_code"));
    CopyAttribute(code.get(), "co_filename", file, sizeof(file));
    const Reference line(Attribute(at.get(), "tb_lineno"));
    if (file[0] != '\0' && line.get() != nullptr && !IsOfPythonLibrary(file)) {
      const char* slash = strrchr(file, '/');
      snprintf(out, size, " at %.120s:%ld", slash == nullptr ? file : slash + 1,
               python.PyLong_AsLong(line.get()));
    }
    at.Set(Attribute(at.get(), "tb_next"));
  }
}

void Note(Object* type, Object* value, Object* traceback) {
  segment::SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header == nullptr) return;
  char name[280], message[segment::kErrorBytes], place[160], whole[segment::kErrorBytes];
  NameOfType(type, name, sizeof(name));
  if (strcmp(name, "KeyboardInterrupt") == 0) return;  // somebody ended the job
  const Reference text(value == nullptr ? nullptr : python.PyObject_Str(value));
  CopyFirstLine(text.get(), message, sizeof(message));
  PlaceOf(traceback, place, sizeof(place));
  // The place always fits: the message is cut instead.
  const int most = static_cast<int>(sizeof(whole) - 3 - strlen(name) - strlen(place));
  snprintf(whole, sizeof(whole), "%s%s%.*s%s", name, message[0] == '\0' ? "" : ": ", most, message,
           place);
  header->error_ticks.store(0, std::memory_order_release);
  memcpy(header->error, whole, sizeof(whole));
  header->error_ticks.store(Now(), std::memory_order_release);
}

// sys.excepthook(type, value, traceback). `previous` is what was there before us.
Object* OnException(Object* previous, Object* arguments) {
  {
    const KeepErrno keep_errno;
    Object* parts[3];
    for (int i = 0; i < 3; ++i) {
      parts[i] = python.PyTuple_GetItem(arguments, i);  // not ours to release
      if (parts[i] == nullptr) python.PyErr_Clear();
    }
    Note(parts[0], parts[1], parts[2]);
  }
  return python.PyObject_CallObject(previous, arguments);
}

MethodDef excepthook = {"excepthook", &OnException, kVarArgs, nullptr};

// Run by the interpreter, in its main thread, with its lock.
int Wrap(void*) {
  const KeepErrno keep_errno;
  Object* previous = python.PySys_GetObject("excepthook");  // not ours to release
  if (previous == nullptr) return 0;
  const Reference ours(python.PyCFunction_NewEx(&excepthook, previous, nullptr));
  if (ours.get() != nullptr && python.PySys_SetObject("excepthook", ours.get()) != 0) {
    python.PyErr_Clear();
  }
  return 0;
}

}  // namespace

void StartPythonErrors() {
  static std::atomic<bool> started{false};
  if (started.exchange(true)) return;
  const KeepErrno keep_errno;
  if (FindPython()) python.Py_AddPendingCall(&Wrap, nullptr);
}

}  // namespace rollcall
