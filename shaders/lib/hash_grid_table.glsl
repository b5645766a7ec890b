// hash_grid_table.glsl - features of a hash grid's table, read
VKT_IN4(HASH_GRID_TABLE, table4);

// Features 4 q and on of the entry that begins at float `at`; behind the last, any numbers of the table.
vec4 features_at(uint at, uint q)
{
    vec4 v = LOAD4(table4, (at >> 2) + q);
    if (FEATURES == 1) v.x = v[at & 3u];
    if (FEATURES == 2) v.xy = (at & 2u) != 0 ? v.zw : v.xy;
    return v;
}
