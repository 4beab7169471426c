# SPDX-License-Identifier: Apache-2.0
"""Hangs on several gloo groups at once."""

import torch
import torch.distributed as dist
from common import WIDTH, main, program

STEPS = 8


def add(group=None):
    dist.all_reduce(torch.ones(WIDTH), group=group)  # hangs: skips_its_pair, some_ranks_make_a_group


@program
def three_pairs_in_a_circle(args):
    """Each rank is in two pairs. Each begins with another one: 0 waits for 1, 1 for 2, 2 for 0."""
    pairs = [dist.new_group([first, (first + 1) % 3], group_desc=f"pair {first}") for first in range(3)]
    own, before = pairs[args.rank], pairs[args.rank - 1]
    in_one_order = sorted((own, before), key=pairs.index)
    for _ in range(STEPS):
        for pair in in_one_order:
            add(pair)
    for pair in in_one_order if args.fixed else (own, before):
        add(pair)  # hangs: three_pairs_in_a_circle


@program
def skips_its_pair(args):
    """Ranks 0 and 1 add up among themselves before all do; once rank 1 has nothing to add."""
    pair = dist.new_group([0, 1], group_desc="pair")
    for number in range(5 * STEPS):
        has_words = number != 35 or args.rank != 1 or args.fixed
        if args.rank < 2 and has_words:
            add(pair)
        add()


@program
def some_ranks_make_a_group(args):
    """Rank 2 is no member, so its program does not make the group. All must."""
    add()
    if args.rank < 2 or args.fixed:
        dist.new_group([0, 1], group_desc="pair")
    everyone = dist.new_group(group_desc="everyone")  # hangs: some_ranks_make_a_group
    add(everyone)


if __name__ == "__main__":
    main("gloo")
