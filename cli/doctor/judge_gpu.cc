// SPDX-License-Identifier: Apache-2.0
// The driver of the GPUs, and whether the GPUs can record their progress.
#include "absl/strings/str_cat.h"
#include "cli/doctor/checks.h"

namespace rollcall::doctor {

Judgement JudgeGpuDriver(const Facts& facts) {
  const GpuFacts& gpu = facts.gpu;
  if (gpu.driver.empty()) {
    if (gpu.is_amd) return {State::kOk, "AMD's driver is there (/dev/kfd)", ""};
    return {State::kNotApplicable, "no GPU driver: jobs here use no GPU", ""};
  }
  const std::string name = absl::StrCat("NVIDIA's driver ", gpu.driver);
  if (gpu.devices == 0) {
    return {
        State::kProblem,
        absl::StrCat(name, " is loaded, and no /dev/nvidia0 is here: this container got no GPU"),
        "docker run --gpus=all ...   (Kubernetes: resources.limits: nvidia.com/gpu)"};
  }
  if (!gpu.device_error.empty()) {
    return {State::kProblem, absl::StrCat(name, ": cannot open /dev/nvidiactl: ", gpu.device_error),
            "ls -l /dev/nvidiactl   and add this user to the group of the file"};
  }
  if (gpu.library.empty()) {
    return {
        State::kProblem,
        absl::StrCat(name, " is loaded, and libcuda.so.1 is in no folder of the loader"),
        "docker run --gpus=all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ...   or   ldconfig"};
  }
  return {State::kOk, absl::StrCat(name, ", ", gpu.devices, gpu.devices == 1 ? " GPU" : " GPUs"),
          ""};
}

Judgement JudgeMarkers(const Facts& facts) {
  if (facts.gpu.library.empty()) {
    return {State::kNotApplicable, "no libcuda.so.1, so no GPU markers", ""};
  }
  if (facts.Variable("ROLLCALL_MARKERS") == "0") {
    return {State::kWarning,
            "ROLLCALL_MARKERS=0: verdicts cannot show whether a GPU has begun or ended a call",
            "unset ROLLCALL_MARKERS"};
  }
  if (!facts.gpu.elf.has_marker_calls) {
    return {State::kWarning,
            absl::StrCat(facts.gpu.library,
                         " lacks cuStreamWriteValue64_v2: the GPU cannot record its progress"),
            "install a driver for CUDA 11.7 or newer"};
  }
  return {State::kOk, absl::StrCat(facts.gpu.library, " lets GPUs record their progress"), ""};
}

}  // namespace rollcall::doctor
