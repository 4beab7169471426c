// SPDX-License-Identifier: Apache-2.0
// Which containers of a pod get the library, and what changes in the pod for them. Pure.
//
// An init container copies the library from Rollcall's image into a volume of the pod. The
// containers see the volume at /rollcall/lib, and a file of it as /etc/ld.so.preload: so each
// process loads the library, also those that sshd starts without the container's environment, and
// an LD_PRELOAD of the image stays as it is. Segments go into a memory volume of their own, because
// /dev/shm of a pod has 64 MiB, and NCCL needs them. A pod or container that our parts would make
// invalid is left alone. Rules of the cluster about them are unknown here: docs/kubernetes.md.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace rollcall {

struct InjectionSettings {
  std::string image;                         // has the library, and `rollcall install-library`
  std::string pull_policy = "IfNotPresent";  // of this image
  // "namespace": the namespace of the pod is its tenant. "none": no tenant; the namespace becomes a
  // part of the job's name. Another name: all pods are of this tenant.
  std::string tenant = "namespace";
  std::string segments_size = "256Mi";  // limit of the memory volume
  // Request of the init container. Its limits equal its requests: a pod whose containers all have
  // them so stays in the class Guaranteed.
  std::string installer_cpu = "100m";
  std::string installer_memory = "64Mi";
  std::string image_arch = "amd64";  // of the image, as nodes name it in kubernetes.io/arch
  // Resources whose containers get the library. "nvidia.com/mig-*" means all with this beginning.
  std::vector<std::string> gpu_resources = {"nvidia.com/gpu", "nvidia.com/gpu.shared",
                                            "nvidia.com/mig-*"};
};

struct Injection {
  std::vector<std::string> containers;  // that get the library; empty if the pod stays as it is
  std::string left_out;  // why containers, or the pod, stay as they are; empty if none does
};

// What to do with this pod. `pod` comes from a stranger: it may be any JSON.
Injection PlanInjection(const nlohmann::json& pod, const InjectionSettings& settings);

// The changes as a JSON Patch (RFC 6902); an empty array if there are none. `space`: the pod's
// namespace. Applied to a pod that has them already, it is empty.
nlohmann::json MakePatch(const nlohmann::json& pod, const std::string& space,
                         const InjectionSettings& settings, const Injection& injection);

}  // namespace rollcall
