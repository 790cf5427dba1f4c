_steelyard_complete() {
    local line="${COMP_LINE:0:COMP_POINT}" current="${COMP_WORDS[COMP_CWORD]}" word prefix candidate
    word="${line##*[[:space:]]}"
    # Bash splits words at = and :, and puts a candidate in place of what stands behind the last of them.
    [[ $current == [=:] ]] && current=""
    prefix="${word%"$current"}"
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        COMPREPLY+=("${candidate#"$prefix"}")
    done < <(VARIABLE="$line" "$1" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _steelyard_complete steelyard
