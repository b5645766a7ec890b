# Adds the programs vkt_embed and vkt_bfloat, which run while the library is built. With VKT_COMPRESS_SPIRV, vkt_embed
# needs zlib.
add_executable(vkt_bfloat ${CMAKE_CURRENT_LIST_DIR}/bfloat.c)
add_executable(vkt_embed ${CMAKE_CURRENT_LIST_DIR}/embed.c)
set_target_properties(vkt_bfloat PROPERTIES OUTPUT_NAME vkt-bfloat)
set_target_properties(vkt_embed PROPERTIES OUTPUT_NAME vkt-embed)
if(VKT_COMPRESS_SPIRV)
  find_package(ZLIB REQUIRED)
  target_compile_definitions(vkt_embed PRIVATE EMBED_ZLIB=1)
  target_link_libraries(vkt_embed PRIVATE ZLIB::ZLIB)
endif()
