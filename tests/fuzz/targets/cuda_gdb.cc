// SPDX-License-Identifier: Apache-2.0
// What cuda-gdb prints about a core dump of a GPU, up to the report.
#include "base/clean_text.h"
#include "cli/gpu_dump/cuda_gdb_text.h"
#include "daemon/report/gpu/gpu_dumps.h"
#include "fuzz_target.h"

namespace rollcall {
namespace fuzz {
namespace {

void Run(Input input) {
  v1::GpuDump dump;
  const std::string text(input.TakeRest());
  const GdbRead read = ReadCudaGdb(text, *DefaultRedactor(), &dump);
  Promise((read == GdbRead::kKernels) == (dump.kernels_size() > 0), "kernels are told");
  Promise(dump.kernels_size() <= kMostGpuKernels, "a dump is bounded");
  for (const v1::GpuKernel& kernel : dump.kernels()) {
    Promise(kernel.places_size() <= kMostGpuPlaces, "a kernel is bounded");
    Promise(!kernel.name().empty() && kernel.name().size() <= kMostGpuText, "a name is bounded");
  }
  v1::Incident incident;
  AddToIncident(dump, &incident);
  for (const std::string& line : GpuDumpLines(incident)) {
    Promise(IsCleanText(line), "a line can be printed");
  }
}

const Registered kTarget({"cuda_gdb", 8192, &Run});

}  // namespace
}  // namespace fuzz
}  // namespace rollcall
