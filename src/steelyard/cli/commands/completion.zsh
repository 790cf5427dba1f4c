#compdef steelyard
_steelyard() {
    local -a answers described
    local each
    answers=("${(@f)$(VARIABLE="${(j: :)words[1,CURRENT]}" $words[1] 2>/dev/null)}")
    for each in $answers; do
        if [[ $each == *$'\t'* ]]; then
            described+=("${${each%%$'\t'*}//:/\:}:${each#*$'\t'}")
        else
            described+=("${each//:/\:}")
        fi
    done
    if (( $#described )); then
        _describe -V steelyard described
    else
        _files
    fi
}
compdef _steelyard steelyard
