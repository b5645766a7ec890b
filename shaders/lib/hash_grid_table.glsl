// hash_grid_table.glsl - reads features from a hash grid's table
VKT_IN4(HASH_GRID_TABLE, table4);

// Returns features 4 q .. 4 q + 3 of the entry that begins at float `at`. Elements past the last feature are unspecified table
// values.
vec4 features_at(uint at, uint q)
{
    vec4 v = LOAD4(table4, (at >> 2) + q);
    if (FEATURES == 1) v.x = v[at & 3u];
    if (FEATURES == 2) v.xy = (at & 2u) != 0 ? v.zw : v.xy;
    return v;
}
