// channels.glsl - which vec4s of a batch-last channel hold real rows: see abi/batch_norm.abi.h
// Real elements among the first i vec4s of a channel.
uint real_before(uint i, uint rows)
{
    return i / pc.period4 * rows + min(4 * (i % pc.period4), rows);
}

// Which lanes of vec4 i are real.
bvec4 is_real(uint i, uint rows)
{
    return lessThan(4 * (i % pc.period4) + uvec4(0, 1, 2, 3), uvec4(rows));
}
