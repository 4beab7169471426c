// SPDX-License-Identifier: Apache-2.0
// Shortens the columns of a tick's records: training repeats itself, so most columns of a batch
// have the same value in all rows. To write and to read them is most of the cost of a tick.
#pragma once

#include "rollcall/v1/agent.pb.h"

namespace rollcall {

// Reduces each column with equal values to one value. Only for a daemon whose welcome has
// reads_short_columns: an older one would read one row.
void ShortenColumns(v1::Tick* tick);

}  // namespace rollcall
