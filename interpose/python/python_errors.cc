// SPDX-License-Identifier: Apache-2.0
#include "interpose/python/python_errors.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "interpose/keep_errno.h"
#include "interpose/options.h"
#include "interpose/python/python_api.h"
#include "interpose/python/python_files.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

using python::Attribute;
using python::Object;
using python::Reference;

// Copies the first line, cut to `size`.
void CopyFirstLine(Object* text, char* out, size_t size) {
  out[0] = '\0';
  intptr_t length = 0;
  const char* bytes =
      text == nullptr ? nullptr : python::api.PyUnicode_AsUTF8AndSize(text, &length);
  if (bytes == nullptr) {
    python::api.PyErr_Clear();
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

// Writes a type's name as a traceback does: "ValueError", "torch.OutOfMemoryError".
void TypeName(Object* type, char* out, size_t size) {
  char module[128], name[128];
  CopyAttribute(type, "__module__", module, sizeof(module));
  CopyAttribute(type, "__qualname__", name, sizeof(name));
  const bool plain =
      module[0] == '\0' || strcmp(module, "builtins") == 0 || strcmp(module, "__main__") == 0;
  snprintf(out, size, "%s%s%s", plain ? "" : module, plain ? "" : ".", name);
}

// Writes " at train.py:57": the innermost line that is not in a library.
void FindRaisingLine(Object* traceback, char* out, size_t size) {
  constexpr int kMostFrames = 10000;
  out[0] = '\0';
  Reference at(traceback);
  if (traceback != nullptr) python::api.Py_IncRef(traceback);
  for (int i = 0; i < kMostFrames && at.get() != nullptr; ++i) {
    char file[512];
    const Reference frame(Attribute(at.get(), "tb_frame"));
    const Reference code(Attribute(frame.get(), "f_code"));
    CopyAttribute(code.get(), "co_filename", file, sizeof(file));
    const Reference line(Attribute(at.get(), "tb_lineno"));
    if (file[0] != '\0' && line.get() != nullptr && !IsPythonLibraryFile(file)) {
      const char* slash = strrchr(file, '/');
      snprintf(out, size, " at %.120s:%ld", slash == nullptr ? file : slash + 1,
               python::api.PyLong_AsLong(line.get()));
    }
    at.Set(Attribute(at.get(), "tb_next"));
  }
}

// "ValueError: no such file at train.py:57".
struct ErrorText {
  char type[280];
  char whole[segment::kErrorBytes];
};

void Describe(Object* type, Object* value, Object* traceback, ErrorText* out) {
  char message[segment::kErrorBytes], site[160];
  TypeName(type, out->type, sizeof(out->type));
  const Reference text(value == nullptr ? nullptr : python::api.PyObject_Str(value));
  CopyFirstLine(text.get(), message, sizeof(message));
  FindRaisingLine(traceback, site, sizeof(site));
  // Cuts the message, not the site.
  const int most = static_cast<int>(sizeof(out->whole) - 3 - strlen(out->type) - strlen(site));
  snprintf(out->whole, sizeof(out->whole), "%s%s%.*s%s", out->type, message[0] == '\0' ? "" : ": ",
           most, message, site);
}

void RecordError(Object* type, Object* value, Object* traceback) {
  segment::SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header == nullptr) return;
  ErrorText error;
  Describe(type, value, traceback, &error);
  if (strcmp(error.type, "KeyboardInterrupt") == 0) return;  // a person ended the job
  header->error_ticks.store(0, std::memory_order_release);
  memcpy(header->error, error.whole, sizeof(error.whole));
  header->error_ticks.store(Now(), std::memory_order_release);
}

// `failed`: a threading.ExceptHookArgs. A thread that sys.exit() ends is not a failure.
void RecordThreadError(Object* failed) {
  segment::SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header == nullptr) return;
  const Reference type(Attribute(failed, "exc_type"));
  const Reference value(Attribute(failed, "exc_value"));
  const Reference traceback(Attribute(failed, "exc_traceback"));
  const Reference thread(Attribute(failed, "thread"));
  ErrorText error;
  Describe(type.get(), value.get(), traceback.get(), &error);
  if (error.type[0] == '\0' || strcmp(error.type, "SystemExit") == 0) return;
  char name[segment::kThreadNameBytes];
  CopyAttribute(thread.get(), "name", name, sizeof(name));
  // Without the interpreter's lock (free threading), two may come at once: neither waits.
  static std::atomic<bool> is_writing{false};
  if (is_writing.exchange(true)) return;
  header->thread_error_ticks.store(0, std::memory_order_release);
  memcpy(header->failed_thread, name, sizeof(name));
  memcpy(header->thread_error, error.whole, sizeof(error.whole));
  header->thread_error_ticks.store(Now(), std::memory_order_release);
  is_writing.store(false);
}

// sys.excepthook(type, value, traceback). `previous` is the hook before ours.
Object* OnException(Object* previous, Object* arguments) {
  {
    const KeepErrno keep_errno;
    Object* parts[3];
    for (int i = 0; i < 3; ++i) {
      parts[i] = python::api.PyTuple_GetItem(arguments, i);  // a borrowed reference
      if (parts[i] == nullptr) python::api.PyErr_Clear();
    }
    RecordError(parts[0], parts[1], parts[2]);
  }
  return python::api.PyObject_CallObject(previous, arguments);
}

// threading.excepthook(args). `previous` is the hook before ours.
Object* OnThreadException(Object* previous, Object* arguments) {
  {
    const KeepErrno keep_errno;
    Object* failed = python::api.PyTuple_GetItem(arguments, 0);  // a borrowed reference
    if (failed == nullptr) python::api.PyErr_Clear();
    if (failed != nullptr) RecordThreadError(failed);
  }
  return python::api.PyObject_CallObject(previous, arguments);
}

// If the creation of the first communicator failed and that ended the program, the interpreter runs
// the pending call only at shutdown, after it printed the exception. At an interactive prompt an
// exception ends nothing.
void RecordLastError() {
  Object* type = python::api.PySys_GetObject("last_type");
  if (type == nullptr || python::api.PySys_GetObject("ps1") != nullptr) return;
  RecordError(type, python::api.PySys_GetObject("last_value"),
              python::api.PySys_GetObject("last_traceback"));
}

python::MethodDef excepthook = {"excepthook", &OnException, python::kVarArgs, nullptr};
python::MethodDef thread_excepthook = {"excepthook", &OnThreadException, python::kVarArgs, nullptr};

// The hook that WrapThreadHook() has set, as a reference of its own.
std::atomic<Object*> our_thread_hook{nullptr};

// A program that has not imported `threading` has no threads of Python. One that has set its own
// hook since the first time gets it wrapped, too. Returns whether the hook is ours now.
bool WrapThreadHook() {
  Object* modules = python::api.PySys_GetObject("modules");  // borrowed references
  Object* threading =
      modules == nullptr ? nullptr : python::api.PyDict_GetItemString(modules, "threading");
  if (threading == nullptr) {
    python::api.PyErr_Clear();
    return false;
  }
  const Reference previous(Attribute(threading, "excepthook"));
  if (previous.get() == nullptr) return false;
  if (previous.get() == our_thread_hook.load()) return true;
  const Reference ours(python::api.PyCFunction_NewEx(&thread_excepthook, previous.get(), nullptr));
  if (ours.get() == nullptr) return false;
  if (python::api.PyObject_SetAttrString(threading, "excepthook", ours.get()) != 0) {
    python::api.PyErr_Clear();
    return false;
  }
  python::api.Py_IncRef(ours.get());
  our_thread_hook.store(ours.get());
  return true;
}

// Runs in the main thread of the interpreter, which holds its lock.
int Wrap(void*) {
  const KeepErrno keep_errno;
  RecordLastError();
  WrapThreadHook();
  Object* previous = python::api.PySys_GetObject("excepthook");  // a borrowed reference
  if (previous == nullptr) return 0;
  const Reference ours(python::api.PyCFunction_NewEx(&excepthook, previous, nullptr));
  if (ours.get() != nullptr && python::api.PySys_SetObject("excepthook", ours.get()) != 0) {
    python::api.PyErr_Clear();
  }
  return 0;
}

}  // namespace

void WatchPythonThreads() {
  static std::atomic<bool> watched{false};
  if (watched.load(std::memory_order_relaxed)) return;
  const KeepErrno keep_errno;
  const LibraryOptions options = ReadLibraryOptions();
  if (!options.enabled || !options.python_errors) return;
  if (!python::HoldsLock() || !python::Find() || python::api.PyErr_Occurred() != nullptr) return;
  if (WrapThreadHook()) watched.store(true);
}

void StartPythonErrors() {
  static std::atomic<bool> started{false};
  if (started.exchange(true)) return;
  const KeepErrno keep_errno;
  if (python::Find()) python::api.Py_AddPendingCall(&Wrap, nullptr);
}

}  // namespace rollcall
