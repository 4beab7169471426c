// SPDX-License-Identifier: Apache-2.0
// Lets a Python class be a c10d::Backend, as ProcessGroupNCCL is one.
//
// torch allows Python to derive from ProcessGroup only. But coalescing of
// batch_isend_irecv, splitting, functional collectives and the debug wrapper work
// only for a plain ProcessGroup over a registered Backend. Each method here calls
// the Python method of the same name; which class it is, rollcall_torch_nccl says.
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace {

using c10d::Backend;
using c10d::Work;
using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;
using WorkPtr = c10::intrusive_ptr<Work>;

// What a Python method gave back: an object with wait(), is_completed(), result() and
// get_future(). Owns it.
class PythonWork : public Work {
 public:
  explicit PythonWork(py::object work) : work_(std::move(work)) {}

  ~PythonWork() override {
    py::gil_scoped_acquire gil;
    work_ = py::object();
  }

  bool isCompleted() override {
    py::gil_scoped_acquire gil;
    return work_.attr("is_completed")().cast<bool>();
  }

  bool isSuccess() const override {
    py::gil_scoped_acquire gil;
    return work_.attr("is_completed")().cast<bool>();
  }

  bool wait(std::chrono::milliseconds /*timeout*/) override {
    py::gil_scoped_acquire gil;
    return work_.attr("wait")().cast<bool>();
  }

  void synchronize() override { wait(kNoTimeout); }

  Tensors result() override {
    py::gil_scoped_acquire gil;
    return work_.attr("result")().cast<Tensors>();
  }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    py::gil_scoped_acquire gil;
    return work_.attr("get_future")().cast<std::shared_ptr<torch::jit::PythonFutureWrapper>>()->fut;
  }

 private:
  py::object work_;
};

class PythonBackend : public Backend {
 public:
  using Backend::Backend;

  const std::string getBackendName() const override { return get<std::string>("name"); }
  bool supportsSplitting() const override { return true; }
  bool supportsCoalescing() const override { return true; }
  c10::intrusive_ptr<Options> getBackendOptions() override {
    return get<c10::intrusive_ptr<Options>>("backend_options");
  }

  void startCoalescing() override { get<py::object>("start_coalescing"); }
  WorkPtr endCoalescing() override { return work("end_coalescing"); }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return work("broadcast", tensors, options);
  }
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return work("allreduce", tensors, options);
  }
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override {
    return work("allreduce_coalesced", tensors, options);
  }
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return work("reduce", tensors, options);
  }
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override {
    return work("allgather", outputs, inputs, options);
  }
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override {
    return work("all_gather_single", output, input, options);
  }
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override {
    return work("all_gather_single_coalesced", outputs, inputs, options);
  }
  WorkPtr gather(TensorLists& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override {
    return work("gather", outputs, inputs, options);
  }
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs,
                  const c10d::ScatterOptions& options) override {
    return work("scatter", outputs, inputs, options);
  }
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs,
                         const c10d::ReduceScatterOptions& options) override {
    return work("reduce_scatter", outputs, inputs, options);
  }
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    return work("reduce_scatter_single", output, input, options);
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override {
    return work("reduce_scatter_single_coalesced", outputs, inputs, options);
  }
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                        std::vector<int64_t>& input_sizes,
                        const c10d::AllToAllOptions& options) override {
    return work("all_to_all_single", output, input, output_sizes, input_sizes, options);
  }
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override {
    return work("alltoall", outputs, inputs, options);
  }
  WorkPtr send(Tensors& tensors, int peer, int tag) override {
    return work("send", tensors, peer, tag);
  }
  WorkPtr recv(Tensors& tensors, int peer, int tag) override {
    return work("recv", tensors, peer, tag);
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    return work("recv_anysource", tensors, tag);
  }
  WorkPtr barrier(const c10d::BarrierOptions& options) override { return work("barrier", options); }

  c10::intrusive_ptr<Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                    const std::vector<int>& ranks,
                                    const c10::intrusive_ptr<Options>& options) override {
    const std::string& name =
        options->group_desc.empty() ? options->group_name : options->group_desc;
    return get<c10::intrusive_ptr<Backend>>("split", store, ranks, name);
  }

  void eagerConnectSingleDevice(at::Device) override { get<py::object>("connect"); }
  void setTimeout(std::chrono::milliseconds) override {}
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return get<uint64_t>("sequence_number"); }
  void shutdown() override { get<py::object>("shutdown"); }
  void abort() override { get<py::object>("abort"); }

 private:
  template <typename Result, typename... Arguments>
  Result get(const char* method, Arguments&&... arguments) const {
    py::gil_scoped_acquire gil;
    py::function function = py::get_override(this, method);
    TORCH_CHECK(function, "the Python backend has no method ", method, "()");
    return function(std::forward<Arguments>(arguments)...).template cast<Result>();
  }

  template <typename... Arguments>
  WorkPtr work(const char* method, Arguments&&... arguments) const {
    py::gil_scoped_acquire gil;
    return c10::make_intrusive<PythonWork>(
        get<py::object>(method, std::forward<Arguments>(arguments)...));
  }
};

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  py::module_::import("torch.distributed");
  py::class_<PythonBackend, Backend, c10::intrusive_ptr<PythonBackend>>(module, "PythonBackend")
      .def(py::init<int, int>())
      .def_property_readonly("group_desc", &Backend::getGroupDesc)
      .def_property_readonly("group_name", &Backend::getGroupUid);
}
