// SPDX-License-Identifier: Apache-2.0
// The wrappers of MPI's functions under their other names, PMPI_X. Open MPI's Fortran functions
// call these names. A tool that wraps MPI calls them, too, from inside its own wrapper: those calls
// are inside a recorded one, and go to the real function of the same name.
#define ROLLCALL_PMPI

#include "interpose/calls/calls_mpi.cc"             // NOLINT(bugprone-suspicious-include)
#include "interpose/calls/calls_mpi_comms.cc"       // NOLINT(bugprone-suspicious-include)
#include "interpose/calls/calls_mpi_messages.cc"    // NOLINT(bugprone-suspicious-include)
#include "interpose/calls/calls_mpi_persistent.cc"  // NOLINT(bugprone-suspicious-include)
#include "interpose/calls/calls_mpi_waits.cc"       // NOLINT(bugprone-suspicious-include)
