# SPDX-License-Identifier: Apache-2.0
"""Hangs of actors of Ray, each of which has a rank. The driver has none. Needs the package ray[default].

    ray_actors.py PROGRAM --work FOLDER [--fixed] [--for SECONDS]
"""

import ray
from common import answer_that_never_comes, compile_kernels, main, program, rounds
from ray.dag import InputNode

RANKS = 3


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self, rank):
        self.rank, self.peers = rank, []

    def meet(self, peers):
        self.peers = peers

    def weights(self):
        return self.rank

    def train(self, seconds, asks):
        """asks: the ranks whose weights it needs in this step."""
        compile_kernels(seconds)
        return sum(ray.get(self.peers[rank].weights.remote()) for rank in asks)  # hangs: actors_ask_each_other

    def evaluate(self, seconds, resources):
        task = count_errors.options(resources=resources).remote(seconds)
        return ray.get(task)  # hangs: nobody_has_the_resource

    def stage(self, batch, seconds, stuck_at):
        if batch == stuck_at:
            answer_that_never_comes().get()  # hangs: stage_of_a_graph_stands
        compile_kernels(seconds)
        return batch


@ray.remote(num_cpus=0)
def count_errors(seconds):
    compile_kernels(seconds)
    return 0


def start_trainers():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    trainers = []
    for rank in range(RANKS):
        variables = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS)}
        trainers.append(Trainer.options(runtime_env={"env_vars": variables}).remote(rank))
    ray.get([trainer.meet.remote(trainers) for trainer in trainers])
    return trainers


@program
def actors_ask_each_other(args):
    """Actors 0 and 1 each ask for the other's weights inside of a method, and serve one call at a time."""
    trainers = start_trainers()
    number, pause = rounds(args, 3)
    for step in range(number):
        circle = step == 4 and not args.fixed
        asks = [[1], [0], [0]] if circle else [[], [], []]
        ray.get([trainer.train.remote(max(pause, 0.5), asks[rank]) for rank, trainer in enumerate(trainers)])
    ray.shutdown()


@program
def nobody_has_the_resource(args):
    """Actor 1 waits for a task that asks for a resource of which no node has any."""
    trainers = start_trainers()
    number, pause = rounds(args, 3)
    for step in range(number):
        lacking = step == 4 and not args.fixed
        wanted = [{"evaluator": 1} if lacking and rank == 1 else {} for rank in range(RANKS)]
        ray.get([trainer.evaluate.remote(pause, wanted[rank]) for rank, trainer in enumerate(trainers)])
    ray.shutdown()


@program
def stage_of_a_graph_stands(args):
    """Actor 1 is the second stage of a compiled graph. It stands, and all others wait in channels."""
    trainers = start_trainers()
    number, pause = rounds(args, 3)
    with InputNode() as batch:
        result = batch
        for rank, trainer in enumerate(trainers):
            stuck_at = number - 2 if rank == 1 and not args.fixed else -1
            result = trainer.stage.bind(result, pause / RANKS, stuck_at)
    graph = result.experimental_compile()
    for step in range(number):
        ray.get(graph.execute(step), timeout=3600)
    graph.teardown()
    ray.shutdown()


if __name__ == "__main__":
    main()
