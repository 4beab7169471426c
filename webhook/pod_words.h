// SPDX-License-Identifier: Apache-2.0
// The names that the injection uses in pods: what people write there, and what it adds. The Helm
// chart has them too (deploy/kubernetes/rollcall/templates/policy.yaml); tests/kubernetes compares
// both.
#pragma once

namespace rollcall {

// Labels or annotations that people write. A name of Rollcall's own, not of a domain.
inline constexpr char kInjectMark[] = "rollcall/inject";          // "false": leave the pod alone
inline constexpr char kContainersMark[] = "rollcall/containers";  // "a,b", or "*" for all
inline constexpr char kJobMark[] = "rollcall/job";
inline constexpr char kAttemptMark[] = "rollcall/attempt";

// An annotation of the pods that have the library: the containers' names.
inline constexpr char kInjectedMark[] = "rollcall/injected";

// The program in Rollcall's image.
inline constexpr char kProgram[] = "/usr/bin/rollcall";

// Files of a container that has the library.
inline constexpr char kLibraryFolder[] = "/rollcall/lib";
inline constexpr char kLibraryFile[] = "/rollcall/lib/librollcall.so";
inline constexpr char kSegmentsFolder[] = "/rollcall/segments";
inline constexpr char kPreloadFile[] = "/etc/ld.so.preload";
inline constexpr char kPreloadName[] = "ld.so.preload";  // in kLibraryFolder

// Parts of the pod.
inline constexpr char kInstaller[] = "rollcall-install";  // the init container
inline constexpr char kLibraryVolume[] = "rollcall-library";
inline constexpr char kSegmentsVolume[] = "rollcall-segments";

}  // namespace rollcall
