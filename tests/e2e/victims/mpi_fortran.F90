! SPDX-License-Identifier: Apache-2.0
! An MPI job in Fortran in which rank 2 makes a mistake after a few correct rounds.
!
!     mpirun -n 4 mpi_fortran WHAT
!
! -DF08: by the module mpi_f08; else by mpif.h.
program mpi_fortran
#ifdef F08
  use mpi_f08
  implicit none
  type(MPI_Comm) :: half
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: state
#else
  implicit none
  include 'mpif.h'
  integer :: half, requests(2), state(MPI_STATUS_SIZE)
#endif
  character(len=32) :: what
  integer :: rank, ranks, next, before, ierr, i, one, total, got

  call get_command_argument(1, what)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, ierr)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  one = 1
  do i = 1, 5
    call MPI_Allreduce(one, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call MPI_Bcast(one, 1, MPI_INTEGER, 0, half, ierr)
    call MPI_Irecv(got, 1, MPI_INTEGER, before, 7, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Isend(rank, 1, MPI_INTEGER, next, 7, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    call MPI_Sendrecv(rank, 1, MPI_INTEGER, next, 8, got, 1, MPI_INTEGER, before, 8, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
  end do
  if (what == 'skips an allreduce' .and. rank == 2) call forget()
  call MPI_Allreduce(one, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (what == 'skips a send' .and. rank == 2) call forget()
  if (rank == 2) call MPI_Send(rank, 1, MPI_INTEGER, 1, 9, MPI_COMM_WORLD, ierr)
  if (rank == 1) call MPI_Recv(got, 1, MPI_INTEGER, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, state, ierr)
  if (what == 'skips a message' .and. rank == 2) call forget()
  if (rank == 2) call MPI_Send(rank, 1, MPI_INTEGER, 3, 10, MPI_COMM_WORLD, ierr)
  if (rank == 3) call MPI_Recv(got, 1, MPI_INTEGER, 2, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call MPI_Barrier(half, ierr)
  call MPI_Comm_free(half, ierr)
  call MPI_Finalize(ierr)
  if (rank == 0) print *, 'total', total

contains

  ! Where the rank at fault stays.
  subroutine forget()
    do
      call sleep(1)
    end do
  end subroutine forget
end program mpi_fortran
