# Adds the programs vkt_embed and vkt_bfloat, which run while the library is built. VKT_COMPRESS_SPIRV: embed needs zlib.
add_executable(vkt_bfloat ${CMAKE_CURRENT_LIST_DIR}/bfloat.c)
add_executable(vkt_embed ${CMAKE_CURRENT_LIST_DIR}/embed.c)
if(VKT_COMPRESS_SPIRV)
  find_package(ZLIB REQUIRED)
  target_compile_definitions(vkt_embed PRIVATE EMBED_ZLIB=1)
  target_link_libraries(vkt_embed PRIVATE ZLIB::ZLIB)
endif()
