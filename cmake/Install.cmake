# Lists what `cmake --install` installs: the library, its headers, a CMake package, a pkg-config file, the licence, the documents
# and the sources of three small programs. If libvktrain_mpi is built, it is installed too. samples/CMakeLists.txt installs the
# program vkt-info. tests/package tests the installation.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/vktrain)
get_target_property(type vktrain TYPE)
if(type STREQUAL "STATIC_LIBRARY")
  # A program that links an archive must also link the libraries that the archive uses. So these libraries are public
  # requirements here, and `pkg-config --libs vktrain` has them with and without --static.
  set(VKT_PC_REQUIRES)
  set(VKT_PC_LIBS " -pthread -lm")
  foreach(library IN LISTS CMAKE_DL_LIBS)
    string(APPEND VKT_PC_LIBS " -l${library}")
  endforeach()
  set(VKT_DEPENDENCIES "find_dependency(Threads)\n")
  foreach(library IN LISTS VKT_LIBRARIES)
    if(NOT VKT_WITH_${library})
      continue()
    endif()
    string(APPEND VKT_PC_REQUIRES " ${VKT_PC_${library}}")
    if(VKT_TARGET_${library} MATCHES "^PkgConfig::")
      string(APPEND VKT_DEPENDENCIES
        "find_dependency(PkgConfig)\npkg_check_modules(${library} REQUIRED IMPORTED_TARGET ${VKT_PC_${library}})\n")
    else()
      string(APPEND VKT_DEPENDENCIES "find_dependency(${library})\n")
    endif()
  endforeach()
  if(VKT_PC_REQUIRES)
    string(PREPEND VKT_PC_REQUIRES "Requires:")
  endif()
endif()

if(TARGET vktrain_mpi AND type STREQUAL "STATIC_LIBRARY")
  string(JOIN " " VKT_PC_MPI_LIBS "" ${MPI_C_LINK_FLAGS} ${MPI_C_LIBRARIES})
  set(VKT_MPI_DEPENDENCY "find_dependency(MPI COMPONENTS C)")
endif()

configure_package_config_file(cmake/vktrainConfig.cmake.in vktrainConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(vktrainConfigVersion.cmake COMPATIBILITY SameMinorVersion) # a minor version 0.x may change the API
file(RELATIVE_PATH VKT_PC_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p) # a relative path, because the package may be moved
configure_file(cmake/vktrain.pc.in vktrain.pc @ONLY)

install(TARGETS vktrain EXPORT vktrainTargets)
file(RELATIVE_PATH VKT_DOC_TO_INCLUDE ${CMAKE_INSTALL_FULL_DOCDIR} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
set(VKT_PAGES ${CMAKE_CURRENT_BINARY_DIR}/installed_docs) # the pages, with links to installed files
install(CODE "execute_process(COMMAND \"${CMAKE_COMMAND}\" \"-DSOURCE=${PROJECT_SOURCE_DIR}\" \"-DOUT=${VKT_PAGES}\"
  \"-DINCLUDE=${VKT_DOC_TO_INCLUDE}\" -P \"${PROJECT_SOURCE_DIR}/cmake/installed_docs.cmake\" COMMAND_ERROR_IS_FATAL ANY)")
install(DIRECTORY ${VKT_PAGES}/ DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.json" PATTERN "*.png" PATTERN "*.svg"
  PATTERN lab EXCLUDE PATTERN api EXCLUDE)
install(FILES samples/train_minimal.c samples/embed_minimal.c samples/custom_loss.c samples/custom_loss.comp
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/samples)
install(DIRECTORY include/vktrain DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT vktrainTargets NAMESPACE vktrain:: DESTINATION ${package})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vktrainConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/vktrainConfigVersion.cmake
  DESTINATION ${package})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vktrain.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET vktrain_mpi) # installs what find_package(vktrain COMPONENTS mpi) and pkg-config need
  configure_file(cmake/vktrain_mpi.pc.in vktrain_mpi.pc @ONLY)
  install(TARGETS vktrain_mpi EXPORT vktrain_mpiTargets)
  install(EXPORT vktrain_mpiTargets NAMESPACE vktrain:: DESTINATION ${package})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vktrain_mpi.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
