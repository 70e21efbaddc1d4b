"""`headrace groups`: who reads in groups, how far behind they are, and where they go on."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.asking import YesOption, ask
from headrace.cli.folder import ProjectOption, find_config, project_log
from headrace.cli.log.starts import START_HELP, check_start, find_offsets
from headrace.cli.text.output import JsonOption, make_table, show_json, show_renderable, show_text
from headrace.wording import counted

if TYPE_CHECKING:
    from headrace.consume.groups import Group
    from headrace.log import Log

__all__ = ["GroupArgument", "groups_app"]

GroupArgument = Annotated[str, typer.Argument(help="The group's name.")]

groups_app = typer.Typer(
    help="List, describe, reset and delete consumer groups.", invoke_without_command=True
)


@groups_app.callback()
def show_groups(
    context: typer.Context, project: ProjectOption = None, json: JsonOption = False
) -> None:
    """List the consumer groups: members, topics, lag."""
    if context.invoked_subcommand is not None:
        return
    from headrace.consume import list_groups

    with project_log(find_config(project)) as log:
        found = [_summary(log, group) for group in list_groups(log)]
    if json:
        for entry in found:
            show_json(entry)
        return
    if not found:
        show_text("there are no consumer groups")
        return
    columns = ["group", "members", "topics", "lag records"]
    rows = [
        [entry["group"], entry["members"], ", ".join(entry["topics"]), entry["lag_records"]]
        for entry in found
    ]
    show_renderable(make_table("", columns, rows))


def _summary(log: "Log", group: "Group") -> dict[str, Any]:
    from headrace.consume.groups import lag

    behind = lag(log, group)
    return {
        "group": group.name,
        "members": len(group.members),
        "topics": sorted({each.partition.topic for each in behind}),
        "lag_records": sum(each.records for each in behind),
    }


@groups_app.command()
def describe(group: GroupArgument, project: ProjectOption = None, json: JsonOption = False) -> None:
    """Show a group's members, and its offset and lag in every partition."""
    from headrace.consume import find_group
    from headrace.consume.groups import lag

    with project_log(find_config(project)) as log:
        found = find_group(log, group)
        behind = lag(log, found)
    partitions = [
        {
            "topic": each.partition.topic,
            "partition": each.partition.number,
            "offset": each.offset,
            "end_offset": each.extent.end_offset,
            "lag_records": each.records,
            "member": each.member,
        }
        for each in behind
    ]
    if json:
        members = [{"id": member.id, "instance": member.instance} for member in found.members]
        show_json({"group": group, "members": members, "partitions": partitions})
        return
    names = {member.id: member.instance or member.id for member in found.members}
    show_text(f"{group}: members {', '.join(sorted(names.values())) or 'none'}")
    columns = ["topic", "partition", "offset", "end offset", "lag records", "member"]
    rows = [
        [*list(entry.values())[:-1], names.get(str(entry["member"]), "-")] for entry in partitions
    ]
    show_renderable(make_table("", columns, rows))


@groups_app.command()
def reset(
    group: GroupArgument,
    to: Annotated[str, typer.Option(help=f"{START_HELP[0].upper()}{START_HELP[1:]}.")],
    topic: Annotated[
        list[str] | None,
        typer.Option(help="This topic only (may be repeated); else all that the group has read."),
    ] = None,
    yes: YesOption = False,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Let a group go on elsewhere. Refused while it has members."""
    check_start("--to", to)
    from headrace.consume import find_group, reset_group
    from headrace.errors import GroupNotFound

    with project_log(find_config(project)) as log:
        try:
            old = dict(find_group(log, group).offsets)
        except GroupNotFound:
            if not topic:  # with topics named, it is made
                raise
            old = {}
        topics = sorted(set(topic or [place.topic for place in old]))
        new = {
            place: offset
            for each in topics
            for place, offset in find_offsets(log, each, to).items()
        }
        moves = [
            {"topic": place.topic, "partition": place.number, "from": old.get(place), "to": offset}
            for place, offset in sorted(new.items())
        ]
        if not json:
            columns = ["topic", "partition", "from", "to"]
            show_renderable(make_table("", columns, [list(move.values()) for move in moves]))
        ask(f"Let {group} go on there?", yes=yes, refused=f"{group}: not reset")
        reset_group(log, group, new)
    if json:
        show_json({"group": group, "offsets": moves})
    else:
        show_text(f"reset {group}")


@groups_app.command()
def delete(
    group: GroupArgument,
    yes: YesOption = False,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Forget a group and its offsets. Refused while it has members."""
    from headrace.consume import delete_group, find_group

    with project_log(find_config(project)) as log:
        partitions = len(find_group(log, group).offsets)
        question = f"Forget {group} and its {counted(partitions, 'offset')}?"
        ask(question, yes=yes, refused=f"{group}: not deleted")
        delete_group(log, group)
    if json:
        show_json({"group": group, "deleted_offsets": partitions})
    else:
        show_text(f"deleted {group}")
