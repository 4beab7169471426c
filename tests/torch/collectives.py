# SPDX-License-Identifier: Apache-2.0
"""The ranks' side of test_backend.py: every operation of "nccl_cpu", checked by each rank.

    torchrun --nproc-per-node 4 tests/torch/collectives.py RESULTS_DIR

Each function marked @check is one test. A rank writes what became of it to
RESULTS_DIR/<rank>.json after every check, so that a check that never ends shows
as the first one missing. Inputs depend on the rank alone, so every rank knows
what the others gave and computes the expected answer itself.
"""

import copy
import json
import pathlib
import sys
import threading
import traceback

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as functional
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

RANKS = 4
CHECKS = []

INTEGERS = [torch.int8, torch.uint8, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
# Small whole numbers: every type holds them and their products exactly, in any order.
REDUCTIONS = [
    (dist.ReduceOp.SUM, lambda all_inputs: all_inputs.sum(0)),
    (dist.ReduceOp.PRODUCT, lambda all_inputs: all_inputs.prod(0)),
    (dist.ReduceOp.MIN, lambda all_inputs: all_inputs.amin(0)),
    (dist.ReduceOp.MAX, lambda all_inputs: all_inputs.amax(0)),
]


def check(function):
    CHECKS.append(function)
    return function


def given(rank, length=6, dtype=torch.float32):
    """What `rank` puts in: 1, 2 or 3 everywhere, another pattern on each rank."""
    return ((torch.arange(length) + rank) % 3 + 1).to(dtype)


def everyones(length=6, dtype=torch.float32):
    return torch.stack([given(rank, length, dtype) for rank in range(RANKS)])


def expect(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=0)


def expect_error(kind, words, action):
    try:
        action()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")


def hold_back(rank, name):
    """Rank 0 returns when all others have called announce(); they return at once."""
    if rank == 0:
        store().wait([f"{name}:{other}" for other in range(1, RANKS)])


def announce(rank, name):
    store().set(f"{name}:{rank}", "1")


def store():
    return dist.distributed_c10d._get_default_store()


@check
def all_reduce_gives_every_type_and_operation(rank):
    for dtype in INTEGERS + FLOATS:
        for operation, expected in REDUCTIONS:
            tensor = given(rank, dtype=dtype)
            dist.all_reduce(tensor, operation)
            expect(tensor, expected(everyones(dtype=torch.float64)).to(dtype))


@check
def all_reduce_averages(rank):
    for dtype in FLOATS:
        tensor = given(rank, dtype=dtype) * 4
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
        expect(tensor, everyones(dtype=torch.float64).sum(0).to(dtype))


@check
def all_reduce_of_bool_means_any(rank):
    tensor = torch.tensor([rank == 2, False, True])
    dist.all_reduce(tensor)
    expect(tensor, torch.tensor([True, False, True]))


@check
def all_reduce_of_complex_adds_both_parts(rank):
    tensor = torch.complex(given(rank), -given(rank))
    dist.all_reduce(tensor)
    expect(tensor, torch.complex(everyones().sum(0), -everyones().sum(0)))


@check
def all_reduce_takes_a_million_elements(rank):
    tensor = given(rank, 1_000_003)
    dist.all_reduce(tensor)
    expect(tensor, everyones(1_000_003).sum(0))


@check
def all_reduce_takes_a_dense_transposed_tensor(rank):
    tensor = given(rank).reshape(2, 3).t()
    dist.all_reduce(tensor)
    expect(tensor, everyones().sum(0).reshape(2, 3).t())


@check
def coalesced_all_reduces_are_one_operation(rank):
    tensors = [given(rank, length) for length in (3, 5, 1)]
    with dist._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    for tensor in tensors:
        expect(tensor, everyones(len(tensor)).sum(0))


@check
def functional_all_reduce_goes_through_torchs_dispatcher(rank):
    total = functional.all_reduce(given(rank), "sum", dist.group.WORLD)
    expect(functional.wait_tensor(total), everyones().sum(0))


@check
def functional_all_gather_goes_through_torchs_dispatcher(rank):
    gathered = functional.all_gather_single(given(rank), 0, dist.group.WORLD)
    expect(functional.wait_tensor(gathered), everyones().flatten())


@check
def broadcast_comes_from_any_root(rank):
    for root in range(RANKS):
        tensor = given(rank)
        dist.broadcast(tensor, root)
        expect(tensor, given(root))


@check
def reduce_arrives_at_the_root(rank):
    for root in range(RANKS):
        tensor = given(rank)
        dist.reduce(tensor, root)
        if rank == root:
            expect(tensor, everyones().sum(0))


@check
def all_gather_fills_a_list(rank):
    outputs = [torch.zeros(6) for _ in range(RANKS)]
    dist.all_gather(outputs, given(rank))
    expect(torch.stack(outputs), everyones())


@check
def all_gather_takes_uneven_lengths(rank):
    outputs = [torch.zeros(source + 1) for source in range(RANKS)]
    dist.all_gather(outputs, given(rank, rank + 1))
    for source, output in enumerate(outputs):
        expect(output, given(source, source + 1))


@check
def all_gather_single_concatenates(rank):
    output = torch.zeros(RANKS * 6)
    dist.all_gather_single(output, given(rank))
    expect(output, everyones().flatten())


@check
def reduce_scatter_leaves_each_rank_its_part(rank):
    inputs = [given(rank) * (target + 1) for target in range(RANKS)]
    output = torch.zeros(6)
    dist.reduce_scatter(output, inputs)
    expect(output, everyones().sum(0) * (rank + 1))


@check
def reduce_scatter_takes_uneven_lengths(rank):
    inputs = [given(rank, target + 1) for target in range(RANKS)]
    output = torch.zeros(rank + 1)
    dist.reduce_scatter(output, inputs)
    expect(output, everyones(rank + 1).sum(0))


@check
def reduce_scatter_single_leaves_each_rank_its_part(rank):
    output = torch.zeros(6)
    dist.reduce_scatter_single(output, given(rank, RANKS * 6), dist.ReduceOp.MAX)
    expect(output, everyones(RANKS * 6).amax(0).reshape(RANKS, 6)[rank])


@check
def all_to_all_swaps_a_list(rank):
    outputs = [torch.zeros(6) for _ in range(RANKS)]
    dist.all_to_all(outputs, [given(rank) + 10 * target for target in range(RANKS)])
    expect(torch.stack(outputs), everyones() + 10 * rank)


@check
def all_to_all_single_splits_evenly(rank):
    output = torch.zeros(RANKS * 2)
    dist.all_to_all_single(output, given(rank, RANKS * 2))
    expect(output, everyones(RANKS * 2).reshape(RANKS, RANKS, 2)[:, rank].flatten())


@check
def all_to_all_single_takes_uneven_and_empty_splits(rank):
    """Rank r sends t + r elements to rank t: none from rank 0 to itself."""
    sends = [target + rank for target in range(RANKS)]
    receives = [rank + source for source in range(RANKS)]
    output = torch.zeros(sum(receives))
    dist.all_to_all_single(output, torch.full((sum(sends),), float(rank)), receives, sends)
    expect(output, torch.repeat_interleave(torch.arange(4.0), torch.tensor(receives)))


@check
def gather_and_scatter_meet_at_the_root(rank):
    gathered = [torch.zeros(6) for _ in range(RANKS)] if rank == 2 else None
    dist.gather(given(rank), gathered, dst=2)
    output = torch.zeros(6)
    dist.scatter(output, gathered, src=2)
    expect(output, given(rank))


@check
def send_and_recv_pass_round_a_ring(rank):
    """Odd ranks receive first: two ranks meet when they first talk, as on real NCCL."""
    received = torch.zeros(6)
    before, after = (rank - 1) % RANKS, (rank + 1) % RANKS
    if rank % 2 == 1:
        dist.recv(received, before)
    sent = dist.isend(given(rank), after)
    if rank % 2 == 0:
        dist.recv(received, before)
    sent.wait()
    expect(received, given(before))


@check
def sends_to_one_peer_arrive_in_order(rank):
    for number in range(20):
        tensor = torch.tensor([float(number)])
        if rank == 0:
            dist.send(tensor, 1)
        elif rank == 1:
            received = torch.zeros(1)
            dist.recv(received, 0)
            expect(received, tensor)


@check
def a_batch_of_sends_and_receives_is_one_operation(rank):
    """All send first, which stands still unless they are one group of NCCL's."""
    before, after = (rank - 1) % RANKS, (rank + 1) % RANKS
    received = torch.zeros(6)
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, given(rank), after), dist.P2POp(dist.irecv, received, before)
    ])
    assert len(works) == 1, works
    works[0].wait()
    expect(received, given(before))


@check
def coalesced_gathers_give_one_work(rank):
    outputs = [torch.zeros(RANKS * length) for length in (3, 5)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for output in outputs:
            dist.all_gather_single(output, given(rank, len(output) // RANKS))
    assert len(manager.works) == 1
    manager.wait()
    for output in outputs:
        expect(output, everyones(len(output) // RANKS).flatten())


@check
def objects_travel(rank):
    everyone = [None] * RANKS
    dist.all_gather_object(everyone, {"rank": rank, "text": "x" * rank})
    assert everyone == [{"rank": r, "text": "x" * r} for r in range(RANKS)], everyone
    objects = [{"from": 3}] if rank == 3 else [None]
    dist.broadcast_object_list(objects, src=3)
    assert objects == [{"from": 3}], objects
    mine = [None]
    dist.scatter_object_list(mine, list("abcd") if rank == 0 else None, src=0)
    assert mine == ["abcd"[rank]], mine


@check
def groups_work_side_by_side(rank):
    low, odd = dist.new_group([0, 1]), dist.new_group([1, 3])
    for group, members in ((low, [0, 1]), (odd, [1, 3])):
        if rank in members:
            tensor = given(rank)
            dist.all_reduce(tensor, group=group)
            expect(tensor, sum(given(member) for member in members))
            tensor = given(rank)
            dist.broadcast(tensor, members[1], group=group)
            expect(tensor, given(members[1]))


@check
def a_group_is_split_by_nccl(rank):
    """By the group's own method: dist.split_group() wants an accelerator."""
    members = [0, 1] if rank < 2 else [2, 3]
    half = dist.group.WORLD.split_group(members, group_name=f"half:{rank // 2}", group_desc="half")
    tensor = given(rank)
    half.allreduce([tensor]).wait()
    expect(tensor, sum(given(member) for member in members))
    half.shutdown()


@check
def those_outside_a_split_have_no_group(rank):
    part = dist.group.WORLD.split_group([1, 2], group_name="part", group_desc="part")
    assert (part is None) == (rank in (0, 3))
    if part:
        part.barrier().wait()
        part.shutdown()


@check
def a_mesh_of_data_and_tensor_parallel_ranks_has_groups_that_cross(rank):
    mesh = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    row, column = divmod(rank, 2)
    for name, members in (("dp", [column, column + 2]), ("tp", [2 * row, 2 * row + 1])):
        group = mesh[name].get_group()
        assert dist.get_process_group_ranks(group) == members
        tensor = given(rank)
        dist.all_reduce(tensor, group=group)
        expect(tensor, sum(given(member) for member in members))


@check
def a_group_made_by_its_members_alone_works(rank):
    """Of two that are in as many groups: torch names such a group by that number too."""
    if rank in (0, 3):
        group = dist.new_group([0, 3], use_local_synchronization=True)
        tensor = given(rank)
        dist.all_reduce(tensor, group=group)
        expect(tensor, given(0) + given(3))


@check
def barrier_holds_until_the_last_rank_comes(rank):
    announce(rank, "barrier")
    hold_back(rank, "barrier")
    if rank == 0:
        store().set("barrier:last", "1")
        store().get("barrier:last")  # set() does not wait for the store
    dist.barrier()
    assert store().check(["barrier:last"])


@check
def an_operation_is_enqueued_before_the_others_come(rank):
    dist.barrier()
    hold_back(rank, "enqueued")
    tensor = given(rank)
    work = dist.all_reduce(tensor, async_op=True)
    assert rank == 0 or not work.is_completed()
    announce(rank, "enqueued")
    work.wait()
    assert work.is_completed()
    expect(tensor, everyones().sum(0))


@check
def a_future_is_done_only_with_the_data(rank):
    hold_back(rank, "future")
    tensor = given(rank)
    future = dist.all_reduce(tensor, async_op=True).get_future()
    assert rank == 0 or not future.done()
    announce(rank, "future")
    expect(future.wait()[0], everyones().sum(0))


@check
def work_that_nobody_waits_for_keeps_its_memory(rank):
    hold_back(rank, "dropped")
    for _ in range(20):
        dist.all_reduce(given(rank, 100_000), async_op=True)
        others = torch.zeros(100_000)  # takes memory that was given back too early
    announce(rank, "dropped")
    dist.barrier()
    expect(others, torch.zeros(100_000))


@check
def a_wait_lets_other_python_threads_run(rank):
    hold_back(rank, "threads")
    work = dist.all_reduce(torch.ones(1), async_op=True)
    waiting = threading.Event()

    def announce_later():
        waiting.wait()
        announce(rank, "threads")

    thread = threading.Thread(target=announce_later)
    thread.start()
    waiting.set()
    work.wait()
    thread.join()


@check
def what_nccl_cannot_do_is_refused(rank):
    refused = expect_error
    refused(TypeError, "data type", lambda: dist.all_reduce(torch.ones(2, dtype=torch.int16)))
    refused(ValueError, "reduce with", lambda: dist.all_reduce(
        torch.ones(2, dtype=torch.int32), dist.ReduceOp.BXOR))
    refused(ValueError, "contiguous", lambda: dist.all_reduce(torch.ones(4, 4)[:, ::2]))
    refused(ValueError, "not 4 times", lambda: dist.all_gather_single(
        torch.zeros(9), torch.ones(2)))


def train(group, steps=6):
    """Small buckets, so that several all-reduces are in flight; buffers, so that it broadcasts."""
    torch.manual_seed(5)
    net = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 1))
    model = DistributedDataParallel(net, process_group=group, bucket_cap_mb=0.002)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(dist.get_rank())
    losses = []
    for _ in range(steps):
        inputs = torch.randn(8, 16)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


@check
def ddp_trains_as_it_does_on_gloo(rank):
    torch.testing.assert_close(train(dist.group.WORLD), train(dist.new_group(backend="gloo")))


@check
def ddp_join_carries_a_rank_that_has_fewer_steps(rank):
    model = DistributedDataParallel(nn.Linear(4, 1))
    with model.join():
        for _ in range(3 if rank == 3 else 5):
            model(torch.ones(2, 4)).sum().backward()


@check
def fsdp_trains_as_one_process_does(rank):
    torch.manual_seed(6)
    alone = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    sharded = copy.deepcopy(alone)
    mesh = dist.device_mesh.init_device_mesh("cpu", (RANKS,))
    fully_shard(sharded, mesh=mesh)
    inputs = torch.randn(RANKS, 5, 8)
    alone(inputs.flatten(0, 1)).square().mean().backward()
    sharded(inputs[rank]).square().mean().backward()
    for expected, actual in zip(alone.parameters(), sharded.parameters(), strict=True):
        torch.testing.assert_close(actual.grad.full_tensor(), expected.grad)


@check
def a_destroyed_group_can_be_made_again(rank):
    dist.destroy_process_group()
    dist.init_process_group("nccl_cpu")
    announce(rank, "again")
    hold_back(rank, "again")  # or the others might not come to read an old id
    tensor = given(rank)
    dist.all_reduce(tensor)
    expect(tensor, everyones().sum(0))


def main():
    dist.init_process_group("nccl_cpu")
    rank = dist.get_rank()
    results_file = pathlib.Path(sys.argv[1], f"{rank}.json")
    results = {}
    for function in CHECKS:
        try:
            function(rank)
            results[function.__name__] = "ok"
        except Exception:
            results[function.__name__] = traceback.format_exc()
        results_file.write_text(json.dumps(results))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
