// SPDX-License-Identifier: Apache-2.0
#include "security/grpc/quiet_log.h"

#include <grpc/support/log.h>
#include <stdlib.h>

namespace rollcall {

void SilenceGrpc() {
  if (getenv("GRPC_VERBOSITY") != nullptr) return;
  gpr_set_log_verbosity(static_cast<gpr_log_severity>(GPR_LOG_SEVERITY_ERROR + 1));
}

}  // namespace rollcall
