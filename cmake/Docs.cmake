# Adds the target docs: Doxygen writes the API reference to docs/html/index.html of the build folder. The target fails if a
# public symbol has no comment, or if doxygen is not installed. tests/docs tests the target.
find_program(DOXYGEN doxygen)
set(VKT_DOCS_DIR ${CMAKE_CURRENT_BINARY_DIR}/docs)
configure_file(docs/api/Doxyfile.in docs/Doxyfile @ONLY)
if(DOXYGEN)
  add_custom_target(docs COMMAND ${DOXYGEN} ${VKT_DOCS_DIR}/Doxyfile
    COMMENT "API reference: ${VKT_DOCS_DIR}/html/index.html" VERBATIM)
else()
  add_custom_target(docs COMMAND ${CMAKE_COMMAND} -E echo "the API reference wants doxygen (Debian, Ubuntu: apt install doxygen)"
    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
endif()
