// SPDX-License-Identifier: Apache-2.0
// Changes a file that others may read or change at the same time: it has the old content or the new
// one, never a part, and two changes follow each other.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rollcall {

// Gives `edit` the content ("" if there is no file and `create` is set) and puts its result in the
// place of the file, with the same permissions and owner; a new file gets mode 0600. A symbolic
// link stays: what it points to changes. Waits at most 5 s for another change of the file.
// Meanwhile there is a file PATH.lock, which only its owner may open. Any user who may write in the
// folder can make that file first: then this fails. Returns the error of `edit`, kNotFound if there
// is no file, or what failed.
absl::Status EditFile(const std::string& path, bool create,
                      const std::function<absl::StatusOr<std::string>(std::string)>& edit);

}  // namespace rollcall
