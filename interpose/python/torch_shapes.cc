// SPDX-License-Identifier: Apache-2.0
#include "interpose/old_glibc.h"

#include "interpose/python/torch_shapes.h"

#include <string.h>

#include <atomic>

#include "interpose/keep_errno.h"
#include "interpose/python/python_api.h"
#include "interpose/python/python_files.h"
#include "interpose/python/shapes.h"
#include "interpose/thread_state.h"

namespace rollcall {
namespace {

using python::Object;
using python::Reference;

// The library provides `begin` and `end`. METHODS: the index of the argument whose first tensor has
// the shape (None if there is no tensor), and PyTorch's name of the operation if NCCL's name
// differs.
constexpr char kProgram[] = R"(
def wrap():
    import functools, sys
    c10d = sys.modules.get("torch._C._distributed_c10d")
    if c10d is None:
        return False
    METHODS = {
        "allreduce": (0, ""), "allreduce_coalesced": (0, "all_reduce_coalesced"),
        "allgather": (1, ""), "_allgather_base": (1, ""), "all_gather_single": (1, ""),
        "allgather_coalesced": (1, "all_gather_coalesced"),
        "allgather_into_tensor_coalesced": (1, "all_gather_coalesced"),
        "all_gather_single_coalesced": (1, "all_gather_coalesced"),
        "reduce": (0, ""), "broadcast": (0, ""),
        "reduce_scatter": (0, ""), "_reduce_scatter_base": (1, ""),
        "reduce_scatter_single": (1, ""),
        "reduce_scatter_tensor_coalesced": (1, "reduce_scatter_coalesced"),
        "reduce_scatter_single_coalesced": (1, "reduce_scatter_coalesced"),
        "alltoall_base": (1, "all_to_all_single"), "all_to_all_single": (1, "all_to_all_single"),
        "alltoall": (1, "all_to_all"),
        "gather": (1, "gather"), "scatter": (0, "scatter"),
        "send": (0, ""), "recv": (0, ""), "recv_anysource": (0, ""),
        "barrier": (None, "barrier"),
    }
    def observed(method, index, name):
        @functools.wraps(method)
        def call(group, *args, **kwargs):
            try:
                sizes = None
                if index is not None:
                    tensor = args[index]
                    while type(tensor) in (list, tuple):
                        tensor = tensor[0]
                    sizes = tensor.shape
                begin(name, sizes, group.group_desc)
            except Exception:
                pass
            try:
                return method(group, *args, **kwargs)
            finally:
                end()
        return call
    for method, (index, name) in METHODS.items():
        original = getattr(c10d.ProcessGroup, method, None)
        if original is not None:
            setattr(c10d.ProcessGroup, method, observed(original, index, name))
    return True
wrap()
)";

constexpr size_t kNameBytes = sizeof(segment::CommEntry::name);

// The name of the process group whose method this thread is inside.
__thread char group_name[kNameBytes];

const char* Text(Object* object) {
  intptr_t length = 0;
  const char* text =
      object == nullptr ? nullptr : python::api.PyUnicode_AsUTF8AndSize(object, &length);
  if (text == nullptr) python::api.PyErr_Clear();
  return text;
}

// Fills `sizes` from a tuple of ints. Returns -1 if it is not one, or has too many.
int Sizes(Object* tuple, int64_t (&sizes)[segment::kShapeDims]) {
  const intptr_t dims = python::api.PyTuple_Size(tuple);
  if (dims < 0 || dims > segment::kShapeDims) {
    python::api.PyErr_Clear();
    return -1;
  }
  for (intptr_t i = 0; i < dims; ++i) {
    Object* size = python::api.PyTuple_GetItem(tuple, i);
    // Rejects a symbolic size: converting it would make the compiler specialise on it.
    if (python::api.PyObject_IsInstance(size, python::IntType()) != 1) return -1;
    sizes[i] = python::api.PyLong_AsLong(size);
  }
  return static_cast<int>(dims);
}

// begin(name, sizes or None, the group's name)
Object* Begin(Object*, Object* arguments) {
  const KeepErrno keep_errno;
  ThreadState* thread = &this_thread;
  const char* name = Text(python::api.PyTuple_GetItem(arguments, 0));
  int64_t sizes[segment::kShapeDims];
  int dims = Sizes(python::api.PyTuple_GetItem(arguments, 1), sizes);
  if (dims < 0 && name != nullptr && name[0] != '\0') dims = kNameOnly;
  thread->kept_shape = dims < 0 ? uint8_t{0} : FindShape(dims, sizes, name);
  if (thread->kept_shape != 0) thread->next_shape = thread->kept_shape;
  const char* group = Text(python::api.PyTuple_GetItem(arguments, 2));
  // PyTorch's description of a group without a name.
  const bool named = group != nullptr && strcmp(group, "undefined") != 0;
  strncpy(group_name, named ? group : "", kNameBytes - 1);
  thread->last_comm = nullptr;
  return python::api.Py_BuildValue("");
}

// end(): gives the group's name to the communicator that the thread used, if it has none.
Object* End(Object*, Object*) {
  ThreadState* thread = &this_thread;
  if (thread->next_shape == thread->kept_shape) thread->next_shape = 0;
  thread->kept_shape = 0;
  const LocalComm* comm = thread->last_comm;
  if (comm != nullptr && group_name[0] != '\0' && comm->entry->name[0] == '\0') {
    memcpy(comm->entry->name, group_name, kNameBytes);
  }
  group_name[0] = '\0';
  return python::api.Py_BuildValue("");
}

python::MethodDef begin = {"begin", &Begin, python::kVarArgs, nullptr};
python::MethodDef end = {"end", &End, python::kVarArgs, nullptr};

// Runs in the main thread of the interpreter, which holds its lock.
int Install(void*) {
  const KeepErrno keep_errno;
  const Reference builtins(python::api.PyImport_ImportModule("builtins"));
  const Reference compile(python::Attribute(builtins.get(), "compile"));
  const Reference execute(python::Attribute(builtins.get(), "exec"));
  const Reference ours(python::api.PyCFunction_NewEx(&begin, nullptr, nullptr));
  const Reference ours_too(python::api.PyCFunction_NewEx(&end, nullptr, nullptr));
  if (compile.get() == nullptr || execute.get() == nullptr) return 0;
  if (ours.get() == nullptr || ours_too.get() == nullptr) return 0;
  const Reference source(python::api.Py_BuildValue("(sss)", kProgram, kOwnPythonFile, "exec"));
  if (source.get() == nullptr) return 0;
  const Reference code(python::api.PyObject_CallObject(compile.get(), source.get()));
  if (code.get() == nullptr) return 0;
  const Reference arguments(python::api.Py_BuildValue("(O{sOsO})", code.get(), "begin", ours.get(),
                                                      "end", ours_too.get()));
  if (arguments.get() == nullptr) return 0;
  const Reference result(python::api.PyObject_CallObject(execute.get(), arguments.get()));
  return 0;
}

}  // namespace

void StartTensorShapes() {
  static std::atomic<bool> started{false};
  if (started.exchange(true)) return;
  const KeepErrno keep_errno;
  if (python::Find()) python::api.Py_AddPendingCall(&Install, nullptr);
}

}  // namespace rollcall
