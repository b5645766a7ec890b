# Builds one program with OpenMPI and one with MPICH. If an implementation is not installed, its program is left out.
# With VKT_WITH_MPI=OFF, both are left out. Each program compiles engine/mpi/*.c itself, because libvktrain_mpi may link
# another implementation. test_mpi.c starts the programs.

# vkt_mpi_program(name) builds the program for one implementation, if its compiler mpicc.<name> and its launcher
# mpirun.<name> exist. The function asks the compiler for the options ("gcc -I.. -L.. -lmpi").
function(vkt_mpi_program name)
  string(TOLOWER ${name} lower)
  if(VKT_WITH_MPI STREQUAL "OFF")
    return()
  endif()
  find_program(VKT_${name}_C_COMPILER mpicc.${lower})
  find_program(VKT_${name}_LAUNCHER mpirun.${lower})
  if(NOT VKT_${name}_C_COMPILER OR NOT VKT_${name}_LAUNCHER)
    return()
  endif()
  execute_process(COMMAND ${VKT_${name}_C_COMPILER} -show OUTPUT_VARIABLE options RESULT_VARIABLE status
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(options UNIX_COMMAND "${options}")
  if(NOT status EQUAL 0 OR NOT options)
    message(WARNING "${VKT_${name}_C_COMPILER} -show failed: no tests of ${name}")
    return()
  endif()
  list(POP_FRONT options)
  set(includes ${options})
  list(FILTER includes INCLUDE REGEX "^-I")
  list(TRANSFORM includes REPLACE "^-I" "")
  list(FILTER options INCLUDE REGEX "^-(L|l|Wl,)")
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/engine/mpi/*.c)
  add_executable(dist_mpi_${lower} dist/mpi/program.c ${sources})
  target_include_directories(dist_mpi_${lower} SYSTEM PRIVATE ${includes})
  target_compile_definitions(dist_mpi_${lower} PRIVATE VKT_MPI_MESSAGE_BYTES=10000u)
  target_link_libraries(dist_mpi_${lower} PRIVATE vkt_dist vkt_base vkt_options ${options})
  target_compile_definitions(dist_test_mpi PRIVATE VKT_${name}_PROGRAM="$<TARGET_FILE:dist_mpi_${lower}>"
    VKT_${name}_LAUNCHER="${VKT_${name}_LAUNCHER}")
  add_dependencies(dist_test_mpi dist_mpi_${lower})
endfunction()

vkt_mpi_program(OPENMPI)
vkt_mpi_program(MPICH)
