# Builds libvktrain_mpi, with which ranks in different processes exchange data by MPI. This library is separate, so that
# libvktrain does not link MPI.
set(VKT_WITH_MPI AUTO CACHE STRING "build libvktrain_mpi: AUTO (if MPI is found), ON or OFF")
set_property(CACHE VKT_WITH_MPI PROPERTY STRINGS AUTO ON OFF)
set(VKT_MPI_C_COMPILER "" CACHE STRING "the MPI of libvktrain_mpi, by its compiler, e.g. mpicc.mpich; empty: CMake's choice")

if(VKT_WITH_MPI STREQUAL "AUTO" OR VKT_WITH_MPI)
  if(VKT_MPI_C_COMPILER)
    set(MPI_C_COMPILER ${VKT_MPI_C_COMPILER})
  endif()
  if(VKT_WITH_MPI STREQUAL "AUTO")
    find_package(MPI QUIET COMPONENTS C)
  else()
    find_package(MPI REQUIRED COMPONENTS C)
  endif()
endif()
if(NOT MPI_C_FOUND)
  if(VKT_WITH_MPI STREQUAL "AUTO")
    message(STATUS "MPI not found: libvktrain_mpi is not built (Debian, Ubuntu: apt install libopenmpi-dev openmpi-bin)")
  endif()
  return()
endif()

vkt_floor(mpi base)
target_link_libraries(vkt_mpi PUBLIC MPI::MPI_C)

add_library(vktrain_mpi $<TARGET_OBJECTS:vkt_mpi>)
add_library(vktrain::mpi ALIAS vktrain_mpi)
set_target_properties(vktrain_mpi PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${VKT_SOVERSION} LINKER_LANGUAGE C
  EXPORT_NAME mpi)
target_link_libraries(vktrain_mpi PUBLIC vktrain PRIVATE MPI::MPI_C)
get_target_property(type vktrain_mpi TYPE)
if(type STREQUAL "SHARED_LIBRARY") # libvktrain.so does not export the functions of base, so this library gets a copy of them
  target_link_libraries(vktrain_mpi PRIVATE vkt_base)
  target_link_options(vktrain_mpi PRIVATE LINKER:--exclude-libs,ALL)
endif()
